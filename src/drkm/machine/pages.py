"""Memory for a matrix of which the upper triangle alone is written, with few page faults.

The system hands out memory when it is first written to, 4 kB at a time, which for a kernel matrix takes as long as its
values do. Linux hands out 2 MB at a time where it is asked to. Such a page holds parts of many rows, though, and with
it the entries below the diagonal that are never written. In the first half of the rows these are few.
"""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

#: bytes of a matrix from which page faults matter, and those of a large page
LARGE, PAGE = 1 << 25, 1 << 21


def upper_triangle(n: int, dtype: torch.dtype) -> Tensor:
    """Return an n×n matrix on the CPU for its upper triangle: three quarters of it take memory, at most."""
    size = n * n * dtype.itemsize
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if size < LARGE or advice is None:
        return torch.empty(n, n, dtype=dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without large pages refuses, and small ones do.
    with suppress(OSError):
        memory.madvise(advice, 0, size // 2 // PAGE * PAGE)
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return torch.from_numpy(np.frombuffer(memory, dtype=kind).reshape(n, n))
