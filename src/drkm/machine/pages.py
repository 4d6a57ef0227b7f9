"""Memory with few page faults, also for a matrix whose lower triangle is never written.

The system allocates memory when it is first written to, in pages of 4 kB, which for a kernel matrix takes as long as
computing its values. On request, Linux uses pages of 2 MB. Such a page spans many rows, however, including their
unwritten entries below the diagonal. In the first half of the rows these are few.
"""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from drkm.machine.layout import ALIGNMENT

#: bytes of a large page, of it that may stay unused, of an array from which numpy itself requests large pages, and of
#: a matrix from which saving half is worthwhile
PAGE, UNUSED, SOME, LARGE = 1 << 21, 1 << 17, 1 << 22, 1 << 25


def empty(count: int, dtype: torch.dtype) -> Tensor:
    """Return memory for `count` numbers on the CPU, in large pages as far as these are filled."""
    size = count * dtype.itemsize
    pages = (size + UNUSED) // PAGE
    if not hasattr(mmap, "MADV_HUGEPAGE") or not size or (size < SOME and size > PAGE * pages):
        return torch.empty(count, dtype=dtype)
    if size < SOME:
        return _mapped(PAGE * pages, pages)[:size].view(dtype)
    # numpy reuses freed memory, which then needs no page faults.
    array = np.empty(size + ALIGNMENT, dtype=np.uint8)
    begin = -array.ctypes.data % ALIGNMENT
    return torch.from_numpy(array[begin : begin + size]).view(dtype)


def upper_triangle(n: int, dtype: torch.dtype) -> Tensor:
    """Return an n×n matrix on the CPU for its upper triangle; if large, five eighths and a page per row take memory."""
    size = n * n * dtype.itemsize
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return empty(n * n, dtype).view(n, n)
    return _mapped(size, size // PAGE // 2).view(dtype).view(n, n)


def _mapped(size: int, pages: int) -> Tensor:
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
    return torch.from_numpy(array[begin : begin + size])
