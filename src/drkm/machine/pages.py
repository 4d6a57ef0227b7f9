"""Memory for a matrix of which the upper triangle alone is written, with few page faults.

The system hands out memory when it is first written to, 4 kB at a time, which for a kernel matrix takes as long as its
values do. Linux hands out 2 MB at a time where it is asked to, as numpy does for arrays of some size. Such a page holds
parts of many rows, though, and with them the entries below the diagonal that are never written. In the first half of
the rows these are few.
"""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from drkm.machine.layout import ALIGNMENT

#: bytes of a large page, those from which numpy asks for such pages, and those from which half of a matrix is saved
PAGE, SOME, LARGE = 1 << 21, 1 << 22, 1 << 25


def upper_triangle(n: int, dtype: torch.dtype) -> Tensor:
    """Return an n×n matrix on the CPU for its upper triangle: of a large one three quarters take memory, at most."""
    size = n * n * dtype.itemsize
    if size < SOME or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(n, n, dtype=dtype)
    memory = _first_half_in_large_pages(size) if size >= LARGE else np.empty(size + ALIGNMENT, dtype=np.uint8)
    array = np.frombuffer(memory, dtype=np.uint8)
    begin = -array.ctypes.data % ALIGNMENT
    return torch.from_numpy(array[begin : begin + size]).view(dtype).view(n, n)


def _first_half_in_large_pages(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without large pages refuses, and small ones do.
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE, 0, size // 2 // PAGE * PAGE)
    return memory
