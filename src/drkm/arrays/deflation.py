"""Eigenvectors of multiple eigenvalues, which the Krylov space of a single start vector misses.

Such a space contains one eigenvector per eigenvalue. Samples on a grid, a circle or another symmetric figure have
multiple eigenvalues, whose other eigenvectors appear only through rounding, often after the method has stopped. A
second start vector, orthogonal to the eigenvectors found, therefore searches for the missing ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from drkm.arrays.lapack import tridiagonal_eigenpairs
from drkm.machine import blas

Product = Callable[[np.ndarray], np.ndarray]
Pairs = tuple[np.ndarray, np.ndarray]
#: steps of a search: if nothing suggests a multiple eigenvalue, and at most
FEW_STEPS, MOST_STEPS = 6, 120
#: residual, relative to its Ritz value, below which no larger eigenvalue is expected
CONVERGED = 1e-3
#: eigenvalues that differ by less, relative to the last one found, count as equal
APART = 1e-6
#: means of two rows count as equal if they differ by at most this many roundings
EQUAL = 64


def without(product: Product, vectors: np.ndarray) -> Product:
    """Return the operator on the orthogonal complement of some of its eigenvectors."""

    def deflated(v: np.ndarray) -> np.ndarray:
        image = product(v)
        image -= vectors @ (image @ vectors)
        return image

    return deflated


def is_complete(
    product: Product, found: Pairs, tol: float, at_most: float = math.inf, *, thorough: bool = True
) -> bool:
    """Whether no eigenvalue above the last one found is missing.

    Parameters
    ----------
    product : callable
        v ↦ Kv.
    found : pair of arrays
        Eigenvalues and eigenvectors.
    tol : float
        Error that eigenvalues may have, relative to the first.
    at_most : float
        An upper bound of the eigenvalues that were not found. If it is low enough, there is no search.
    thorough : bool
        Whether the search continues until its Ritz value has converged; otherwise it takes a few steps.
    """
    values, vectors = found
    bound = _bound(values, tol)
    if at_most <= bound:
        return True
    deflated = without(product, vectors)
    return not _is_above(bound, deflated, len(vectors), values.dtype, MOST_STEPS if thorough else FEW_STEPS)


def is_symmetric(means: np.ndarray) -> bool:
    """Whether the samples may form a symmetric figure, given the means of the rows of their kernel matrix.

    A symmetry maps samples to samples without a change of kernel values, and so to rows with the same mean. If all
    means differ there is none, and no reason for a multiple eigenvalue.
    """
    rounding = EQUAL * float(np.finfo(means.dtype).eps) * float(np.abs(means).max())
    return bool((np.diff(np.sort(means)) <= rounding).any())


def merged(found: Pairs, more: Pairs, tol: float) -> Pairs:
    """Return the largest eigenpairs among those found and those of the orthogonal complement, as many as were found."""
    # In the complement, the eigenvectors found have the eigenvalue 0, and must not be counted twice.
    new = more[0] > _bound(found[0], tol)
    added = more[1][:, new]
    # Vectors of small eigenvalues have rounding errors along the others.
    added = np.linalg.qr(added - found[1] @ (found[1].T @ added))[0]
    values, vectors = np.append(found[0], more[0][new]), np.hstack([found[1], added])
    largest = values.argsort()[-len(found[0]) :]
    return values[largest], vectors[:, largest]


def _bound(values: np.ndarray, tol: float) -> float:
    """Return the threshold for missing eigenvalues: the last one found or 0, plus a margin for rounding."""
    rounding = max(tol, 100 * float(np.finfo(values.dtype).eps)) * values.max()
    return float((1 + APART) * max(values.min(), 0) + rounding)


def _is_above(bound: float, product: Product, n: int, dtype: np.dtype, steps: int) -> bool:
    """Whether an operator has an eigenvalue above a bound, as far as a Krylov space of a random vector shows.

    The search ends when the largest Ritz value is above the bound, or has converged below it.
    """
    before = np.zeros(n, dtype=dtype)
    vector = product(np.random.RandomState(n).uniform(-1, 1, n).astype(dtype))
    diagonal, beside = [], [blas.length(vector)]
    for step in range(steps):
        if beside[-1] == 0:
            return False
        vector = vector / beside[-1]
        image = product(vector)
        diagonal.append(blas.inner(vector, image))
        image -= diagonal[-1] * vector + (beside[-1] * before if step else 0)
        before, vector = vector, image
        beside.append(blas.length(image))
        if step + 1 < FEW_STEPS:
            continue
        values, vectors = tridiagonal_eigenpairs(np.array(diagonal), np.array(beside[1:-1]))
        if values[-1] > bound:
            return True
        residual = beside[-1] * abs(vectors[-1, -1])
        if residual <= CONVERGED * abs(values[-1]) and values[-1] + residual <= bound:
            return False
    return False
