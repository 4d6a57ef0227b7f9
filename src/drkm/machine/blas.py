"""Products by the BLAS of numpy and scipy, which on some CPUs takes half the time of that of torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

#: most rows of a matrix whose square is computed by one call, and rows per call for larger ones: with two threads and
#: 16,000 rows of 300 numbers OpenBLAS 0.3.30 and 0.3.31 write past the end of their buffer on CPUs with AVX-512
SQUARE, PANEL = 8192, 1024
#: up to this many rows numpy is used, which writes both halves of the square, but starts its threads sooner than scipy
WHOLE = 1448
#: entries of vectors up to which OpenBLAS computes an inner product by one thread
ONE_THREAD = 10_000


def matmul(a: Any, b: Any, out: Any) -> Any:
    """Write the product of two arrays, or of two tensors, into `out`; on a GPU by torch."""
    if getattr(a, "is_cuda", False):
        import torch

        return torch.mm(a, b, out=out)
    # Like torch, leave checks for infinite numbers to the caller.
    with np.errstate(all="ignore"):
        np.matmul(_array(a), _array(b), out=_array(out))
    return out


def _array(numbers: np.ndarray | Tensor) -> np.ndarray:
    return numbers if isinstance(numbers, np.ndarray) else numbers.numpy()


def symmetric_product(upper: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return KA for a vector or a matrix A, from the upper triangle of a symmetric matrix in row-major order.

    The other triangle is never read. For a vector this halves the time, which is spent on reading memory.
    """
    # The BLAS expects column-major order, in which the upper triangle is the lower one.
    return _routine("symv" if A.ndim == 1 else "symm", upper.dtype)(1.0, upper.T, A, lower=1)


def symmetric_operator(upper: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return v ↦ Kv for many products with a small matrix, without checks that would take as long as a product."""
    symv, columns = _routine("symv", upper.dtype), upper.T
    return lambda v: symv(1.0, columns, v, lower=1)


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Return the inner product of two vectors, beside products with a symmetric matrix.

    For long ones the BLAS of numpy would wake its threads, which compete with those of scipy: at n = 20,000 an inner
    product took 2 ms, and a product with the matrix half as long again.
    """
    return float(a.dot(b) if len(a) <= ONE_THREAD else _routine("dot", a.dtype)(a, b))


def length(a: np.ndarray) -> float:
    """Return the length of a vector, beside products with a symmetric matrix."""
    return math.sqrt(inner(a, a))


def remove_rows_(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Subtract from a vector its components along orthonormal rows, in place, and return their coefficients.

    This uses the BLAS of scipy, like products with a symmetric matrix: the idle threads of another BLAS would compete.
    """
    gemv, columns = _routine("gemv", rows.dtype), rows.T
    along = gemv(1.0, columns, vector, trans=1)
    gemv(-1.0, columns, along, beta=1.0, y=vector, overwrite_y=1)
    return along


def upper_square(Z: np.ndarray, out: np.ndarray) -> None:
    """Write the upper triangle of ZZᵀ with the diagonal into `out`; entries below it may be written too."""
    if len(Z) <= WHOLE:
        np.matmul(Z, Z.T, out=out)
        return
    if len(Z) <= SQUARE:
        _routine("syrk", Z.dtype)(1.0, Z.T, c=out.T, trans=1, lower=1, overwrite_c=1)
        return
    for begin in range(0, len(Z), PANEL):
        panel = slice(begin, begin + PANEL)
        np.matmul(Z[panel], Z[begin:].T, out=out[panel, begin:])


@cache
def _routine(name: str, dtype: np.dtype) -> Any:
    from scipy.linalg import blas

    return getattr(blas, ("d" if dtype == np.float64 else "s") + name)
