"""Leading eigenpairs by the Lanczos method without restarts, for spectra that decay.

A restart keeps the basis short and costs products that are made again. Where few eigenpairs are wanted and the others
are smaller, a basis of two or three times as many vectors has converged before there is anything to restart, and what
is left besides the products is a few calls per step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from drkm.machine import blas

#: vectors of the basis when it is first looked at, and at most: so many per eigenpair and so many more
FIRST, MOST = (2, 8), (3, 40)
#: between two looks the basis grows by one in so many vectors, and by at least so many
GROWTH, LEAST_GROWTH = 16, 3


def leading_by_lanczos(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, count: int, tol: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues of a symmetric operator in ascending order and their eigenvectors.

    None is returned where the longest basis is too short for residuals ‖Kv - θv‖ of `tol`·θ, and where an invariant
    subspace is found that has too few eigenpairs: a method with restarts is needed then.

    Parameters
    ----------
    product : callable
        v ↦ Kv.
    start : array of shape (n,)
        Where the Krylov space begins, not zero.
    count : int
        Number of eigenpairs.
    tol : float
        Largest residual relative to the eigenvalue.
    """
    n, dtype = len(start), start.dtype
    most, look = (min(n - 1, per * count + more) for per, more in (MOST, FIRST))
    basis = np.empty((most + 1, n), dtype=dtype)
    diagonal, beside = np.empty(most), np.empty(most)
    rounding, largest = float(np.finfo(dtype).eps), 0.0
    basis[0] = start / np.linalg.norm(start)
    for step in range(most):
        known = basis[: step + 1]
        image = product(basis[step])
        diagonal[step] = own = blas.remove_rows_(known, image)[step]
        # Twice is enough: the first time leaves rounding of the size of what it removed.
        blas.remove_rows_(known, image)
        beside[step] = size = math.sqrt(image.dot(image))
        largest = max(largest, own)
        if size <= rounding * largest:
            return None
        np.divide(image, size, out=basis[step + 1])
        if step + 1 == look:
            pairs = _ritz_pairs(diagonal[: step + 1], beside[: step + 1], count, tol)
            if pairs is not None:
                return pairs[0].astype(dtype), known.T @ pairs[1].astype(dtype)
            look += max(LEAST_GROWTH, look // GROWTH)
    return None


def _ritz_pairs(
    diagonal: np.ndarray, beside: np.ndarray, count: int, tol: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenpairs of the tridiagonal matrix of a basis, if all of them have converged."""
    from scipy.linalg import eigh_tridiagonal

    values, vectors = (part[..., -count:] for part in eigh_tridiagonal(diagonal, beside[:-1], check_finite=False))
    # The residual of a Ritz vector is the weight of the last vector of the basis times what follows it.
    return (values, vectors) if (beside[-1] * np.abs(vectors[-1]) <= tol * values).all() else None
