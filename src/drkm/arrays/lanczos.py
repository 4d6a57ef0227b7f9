"""Leading eigenpairs by the Lanczos method without restarts, for spectra that decay.

A restart keeps the basis short at the price of repeated products. If few eigenpairs are wanted and the others are
smaller, a basis of two or three times as many vectors converges before a restart would begin, and a step costs little
more than its product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from drkm.arrays.lapack import tridiagonal_eigenpairs
from drkm.machine import blas

#: vectors of the basis when Ritz pairs are first computed, and at most: (a, b) means a per eigenpair plus b
FIRST, MOST = (2, 8), (3, 40)
#: share of its length that a vector keeps at least if only rounding was removed from it
KEPT = 0.7
#: steps between the first two computations of Ritz pairs, and at most between two later ones
SECOND_AFTER, LONGEST_WAIT = 3, 8


class Rest(NamedTuple):
    """What a Krylov basis tells about the eigenvalues besides those found in it.

    next_value : the largest Ritz value that was not requested
    coupling : how far the operator leads out of the basis, ‖(I - QQᵀ)KQ‖
    energy : the part of ‖K‖_F² in the basis, ‖QᵀKQ‖_F² + 2·coupling²
    """

    next_value: float
    coupling: float
    energy: float

    def largest(self, energy_of_all: float) -> float:
        """Return an upper bound of the eigenvalues that were not found, given ‖K‖_F².

        Outside the basis K has at most ρ² = ‖K‖_F² - energy. Its largest eigenvalue besides those found is therefore at
        most that of the 2×2 matrix with `next_value` and ρ on its diagonal and `coupling` off it.
        """
        outside = math.sqrt(max(energy_of_all - self.energy, 0.0))
        return (self.next_value + outside) / 2 + math.hypot((self.next_value - outside) / 2, self.coupling)


class Leading(NamedTuple):
    """The largest eigenvalues in ascending order, their eigenvectors, and what is known about the rest."""

    values: np.ndarray
    vectors: np.ndarray
    rest: Rest


def leading_by_lanczos(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, count: int, tol: float = 0.0
) -> Leading | None:
    """Return the largest eigenvalues of a symmetric positive semi-definite operator and their eigenvectors.

    Returns None if the longest basis is too short for the tolerance, or if an invariant subspace has too few
    eigenpairs: then a method with restarts is needed.

    Parameters
    ----------
    product : callable
        v ↦ Kv.
    start : array of shape (n,)
        The start vector of the Krylov space, not zero.
    count : int
        Number of eigenpairs.
    tol : float
        Largest residual ‖Kv - θv‖ relative to the eigenvalue θ, but never below the rounding of the largest
        eigenvalue.
    """
    n, dtype = len(start), start.dtype
    most, look = (min(n - 1, per * count + more) for per, more in (MOST, FIRST))
    basis = np.empty((min(most, look + LONGEST_WAIT) + 1, n), dtype=dtype)
    diagonal, beside = np.empty(most), np.empty(most)
    rounding, largest, seen = float(np.finfo(dtype).eps), 0.0, []
    basis[0] = start / blas.length(start)
    for step in range(most):
        image = product(basis[step])
        diagonal[step] = own = blas.inner(basis[step], image)
        image -= own * basis[step]
        if step:
            image -= beside[step - 1] * basis[step - 1]
        beside[step] = size = _orthogonalise(image, basis[: step + 1])
        largest = max(largest, own)
        if size <= rounding * largest:
            return None
        np.divide(image, size, out=basis[step + 1])
        if step + 1 == look:
            values, vectors, excess = _ritz_pairs(diagonal[:look], beside[:look], count, tol, rounding)
            if excess <= 1:
                rest = Rest(values[-count - 1], size, float(diagonal[:look] @ diagonal[:look]) + _twice(beside[:look]))
                found = basis[:look].T @ vectors[:, -count:].astype(dtype)
                return Leading(values[-count:].astype(dtype), found, rest)
            seen.append((look, excess))
            look = min(most, look + _steps_ahead(seen))
            if look >= len(basis):
                basis = _with_room(basis, most + 1)
    return None


def _with_room(basis: np.ndarray, count: int) -> np.ndarray:
    """Return a basis with room for so many vectors: most spectra need few, and the room would take memory."""
    longer = np.empty((count, basis.shape[1]), dtype=basis.dtype)
    longer[: len(basis)] = basis
    return longer


def _orthogonalise(image: np.ndarray, known: np.ndarray) -> float:
    """Remove the components of a vector along orthonormal ones, in place, and return its length.

    Usually they are rounding, and one pass removes them. A pass that removes more leaves new rounding behind.
    """
    while True:
        along = blas.remove_rows_(known, image)
        left = blas.inner(image, image)
        if not left < KEPT**2 * (left + along.dot(along)):
            return math.sqrt(left)


def _ritz_pairs(
    diagonal: np.ndarray, beside: np.ndarray, count: int, tol: float, rounding: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return eigenpairs of the tridiagonal matrix of a basis, and the worst residual relative to the one allowed."""
    values, vectors = tridiagonal_eigenpairs(diagonal, beside[:-1])
    # The residual of a Ritz vector is its weight on the last basis vector times the next off-diagonal entry.
    residuals = beside[-1] * np.abs(vectors[-1, -count:])
    allowed = np.maximum(tol * values[-count:], rounding * values[-1])
    return values, vectors, float((residuals / allowed).max())


def _twice(beside: np.ndarray) -> float:
    return 2 * float(beside @ beside)


def _steps_ahead(seen: list[tuple[int, float]]) -> int:
    """Return after how many steps residuals should be small enough, extrapolating their decrease so far."""
    if len(seen) < 2:
        return SECOND_AFTER
    (before, larger), (last, excess) = seen[-2:]
    fall = math.log(larger / excess) / (last - before)
    return min(LONGEST_WAIT, max(1, math.ceil(math.log(excess) / fall))) if fall > 0 else LONGEST_WAIT
