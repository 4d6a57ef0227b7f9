"""Memory with few page faults, also for a matrix of which the upper triangle alone is written.

The system hands out memory when it is first written to, 4 kB at a time, which for a kernel matrix takes as long as its
values do. Linux hands out 2 MB at a time where it is asked to. Such a page holds parts of many rows, though, and with
them the entries below the diagonal that are never written. In the first half of the rows these are few.
"""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from drkm.machine.layout import ALIGNMENT

#: bytes of a large page, how much of one may stay unused, bytes from which numpy asks for such pages itself, and those
#: from which half of a matrix is worth saving
PAGE, UNUSED, SOME, LARGE = 1 << 21, 1 << 17, 1 << 22, 1 << 25


def empty(count: int, dtype: torch.dtype) -> Tensor:
    """Return memory for so many numbers on the CPU, in large pages where these are filled."""
    size = count * dtype.itemsize
    pages = (size + UNUSED) // PAGE
    if not hasattr(mmap, "MADV_HUGEPAGE") or (size < SOME and size > PAGE * pages):
        return torch.empty(count, dtype=dtype)
    if size < SOME:
        return _mapped(PAGE * pages, pages)[:size].view(dtype)
    # Of numpy, memory that was freed can be used again without page faults.
    array = np.empty(size + ALIGNMENT, dtype=np.uint8)
    begin = -array.ctypes.data % ALIGNMENT
    return torch.from_numpy(array[begin : begin + size]).view(dtype)


def upper_triangle(n: int, dtype: torch.dtype) -> Tensor:
    """Return an n×n matrix on the CPU for its upper triangle: of a large one three quarters take memory, at most."""
    size = n * n * dtype.itemsize
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return empty(n * n, dtype).view(n, n)
    return _mapped(size, size // PAGE // 2).view(dtype).view(n, n)


def _mapped(size: int, pages: int) -> Tensor:
    """Return so many bytes that begin with so many large pages."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without large pages refuses, and small ones do.
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE, 0, PAGE * pages)
    return torch.from_numpy(np.frombuffer(memory, dtype=np.uint8))
