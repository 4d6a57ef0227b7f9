"""Products by the BLAS of numpy and scipy, which on some CPUs take half the time of those of torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: rows of the largest matrix whose square is one call: with two threads and 16,000 rows of 300 numbers OpenBLAS writes
#: past the end of its buffer (0.3.30 and 0.3.31, with AVX-512). Of larger ones so many rows are multiplied with all
SQUARE, PANEL = 8192, 1024
#: rows of a matrix that is so small that numpy, which writes all of its square, wakes up its threads sooner than scipy
WHOLE = 1448


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Write ab into `out`; on a GPU by torch."""
    if a.is_cuda:
        return torch.mm(a, b, out=out)
    # As torch, it leaves it to the caller to look for numbers that are not finite.
    with np.errstate(all="ignore"):
        np.matmul(a.numpy(), b.numpy(), out=out.numpy())
    return out


def symmetric_product(upper: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return KA for a vector or a block of them, from the upper triangle of a symmetric matrix held in rows.

    The other triangle is never read, which for a vector halves the time: it is that of reading memory.
    """
    # What is the upper triangle in rows is the lower one in columns, which is how a BLAS looks at it.
    return _routine("symv" if A.ndim == 1 else "symm", upper.dtype)(1.0, upper.T, A, lower=1)


def symmetric_operator(upper: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return v ↦ Kv for many products with a small matrix, where a look at each would cost as much as it does."""
    symv, columns = _routine("symv", upper.dtype), upper.T
    return lambda v: symv(1.0, columns, v, lower=1)


def remove_rows_(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Remove from a vector what it has along orthonormal rows, in place, and return how much that was of each.

    By the BLAS of scipy, as products with a symmetric matrix are: idle threads of another one would be in their way.
    """
    gemv, columns = _routine("gemv", rows.dtype), rows.T
    along = gemv(1.0, columns, vector, trans=1)
    gemv(-1.0, columns, along, beta=1.0, y=vector, overwrite_y=1)
    return along


def upper_square(Z: Tensor, out: Tensor) -> None:
    """Write the upper triangle of ZZᵀ, with the diagonal, into `out`; entries below it may be written too."""
    rows, square = Z.numpy(), out.numpy()
    if len(rows) <= WHOLE:
        np.matmul(rows, rows.T, out=square)
        return
    if len(rows) <= SQUARE:
        _routine("syrk", rows.dtype)(1.0, rows.T, c=square.T, trans=1, lower=1, overwrite_c=1)
        return
    for begin in range(0, len(rows), PANEL):
        panel = slice(begin, begin + PANEL)
        np.matmul(rows[panel], rows[begin:].T, out=square[panel, begin:])


@cache
def _routine(name: str, dtype: np.dtype) -> Any:
    from scipy.linalg import blas

    return getattr(blas, ("d" if dtype == np.float64 else "s") + name)
