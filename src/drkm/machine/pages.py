"""Memory with few page faults, also for a matrix whose lower triangle is never written.

The system allocates memory when it is first written to, in pages of 4 kB, which for a kernel matrix takes as long as
computing its values. On request, Linux uses pages of 2 MB. Such a page spans many rows, however, including their
unwritten entries below the diagonal. In the first half of the rows these are few.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

from drkm.machine.layout import ALIGNMENT
from drkm.wording import dtype_name

#: bytes of a large page, of it that may stay unused, of an array from which numpy itself requests large pages, and of
#: a matrix from which saving half is worthwhile
PAGE, UNUSED, SOME, LARGE = 1 << 21, 1 << 17, 1 << 22, 1 << 25


def empty(count: int, dtype: Any) -> np.ndarray:
    """Return memory for `count` numbers at an aligned address, in large pages as far as these are filled."""
    size = count * np.dtype(dtype).itemsize
    pages = (size + UNUSED) // PAGE
    if hasattr(mmap, "MADV_HUGEPAGE") and pages and PAGE * pages >= size and size < SOME:
        return _mapped(PAGE * pages, pages)[:size].view(dtype)
    # numpy reuses freed memory, which then needs no page faults.
    array = np.empty(size + ALIGNMENT, dtype=np.uint8)
    begin = -array.ctypes.data % ALIGNMENT
    return array[begin : begin + size].view(dtype)


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """Return a copy in rows at an aligned address."""
    out = empty(array.size, array.dtype).reshape(array.shape)
    out[...] = array
    return out


def empty_like(count: int, like: Any) -> Any:
    """Return memory for `count` numbers as those of an array or tensor, in large pages on a CPU."""
    if isinstance(like, np.ndarray):
        return empty(count, like.dtype)
    if like.is_cuda:
        return like.new_empty(count)
    import torch

    return torch.from_numpy(empty(count, dtype_name(like.dtype)))


def for_a_while(count: int, like: Any) -> Any:
    """Return memory for `count` numbers as those of a tensor, which goes back to the system as soon as it is freed.

    Once a block of at most 32 MB was freed, the allocator of Linux keeps others of its size, with holes between them.
    """
    size = count * like.element_size()
    if like.is_cuda or not hasattr(mmap, "MADV_HUGEPAGE") or size < PAGE:
        return like.new_empty(count)
    import torch

    return torch.from_numpy(_mapped(size, size // PAGE).view(dtype_name(like.dtype)))


def upper_triangle(n: int, dtype: Any) -> np.ndarray:
    """Return an n×n matrix for its upper triangle; if large, five eighths and a page per row take memory."""
    size = n * n * np.dtype(dtype).itemsize
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return empty(n * n, dtype).reshape(n, n)
    return _mapped(size, size // PAGE // 2).view(dtype).reshape(n, n)


def _mapped(size: int, pages: int) -> np.ndarray:
    """Return `size` bytes of memory that begin with `pages` large pages; the others are small."""
    # Large pages begin at multiples of their size, where Linux puts new memory only from version 6.7 on.
    memory = mmap.mmap(-1, size + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = np.frombuffer(memory, dtype=np.uint8)
    begin = -array.ctypes.data % PAGE
    # A system without large pages refuses; then small ones are used.
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE, begin, PAGE * pages)
        # Some systems use large pages wherever they can.
        memory.madvise(mmap.MADV_NOHUGEPAGE, begin + PAGE * pages)
    return array[begin : begin + size]
