"""Eigenvectors that a Krylov space of one start vector leaves out: those of multiple eigenvalues.

Such a space holds one eigenvector of each eigenvalue. The others of a multiple one, which samples on a grid, a circle
or another symmetric figure have, come by rounding alone, and may come after the method has ended. So a second start
vector, with nothing of what was found in it, looks for what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Product = Callable[[np.ndarray], np.ndarray]
Pairs = tuple[np.ndarray, np.ndarray]
#: steps of the search. An eigenvalue that was left out is as a rule well above the last one that was found in its place
STEPS = 6
#: eigenvalues that differ by less, relative to the last one found, are not told apart
APART = 1e-6


def without(product: Product, vectors: np.ndarray) -> Product:
    """Return the product of an operator with vectors that are orthogonal to some of its eigenvectors, as are images."""

    def deflated(v: np.ndarray) -> np.ndarray:
        image = product(v)
        image -= vectors @ (image @ vectors)
        return image

    return deflated


def is_complete(product: Product, found: Pairs, tol: float, at_most: float = math.inf) -> bool:
    """Whether no eigenvalue above the last one found is left.

    An upper bound of those that are left may say so. Otherwise a few steps from a vector orthogonal to those found do.

    Parameters
    ----------
    product : callable
        v ↦ Kv.
    found : pair of arrays
        Eigenvalues and eigenvectors.
    tol : float
        How far eigenvalues may be off, relative to the first.
    at_most : float
        What no eigenvalue that was left out is above.
    """
    values, vectors = found
    bound = _bound(values, tol)
    return at_most <= bound or _largest(without(product, vectors), len(vectors), values.dtype) <= bound


def merged(found: Pairs, more: Pairs, tol: float) -> Pairs:
    """Return as many of the largest eigenpairs as were found, with those of what is orthogonal to them among them."""
    # Where what was found is taken away, its vectors have the eigenvalue 0, and must not come a second time.
    new = more[0] > _bound(found[0], tol)
    values, vectors = np.append(found[0], more[0][new]), np.hstack([found[1], more[1][:, new]])
    largest = values.argsort()[-len(found[0]) :]
    return values[largest], vectors[:, largest]


def _bound(values: np.ndarray, tol: float) -> float:
    """Return what an eigenvalue that was left out is above: the last one found, and zero, by more than rounding."""
    rounding = max(tol, 100 * float(np.finfo(values.dtype).eps)) * values.max()
    return float((1 + APART) * max(values.min(), 0) + rounding)


def _largest(product: Product, n: int, dtype: np.dtype) -> float:
    """Return a lower bound of the largest eigenvalue, from a Krylov space of a few random numbers."""
    from scipy.linalg import eigvalsh_tridiagonal

    before = np.zeros(n, dtype=dtype)
    vector = product(np.random.RandomState(n).uniform(-1, 1, n).astype(dtype))
    diagonal, beside = [], [float(np.linalg.norm(vector))]
    for _ in range(STEPS):
        if beside[-1] == 0:
            break
        vector = vector / beside[-1]
        image = product(vector)
        diagonal.append(float(vector.dot(image)))
        image -= diagonal[-1] * vector + (beside[-1] * before if len(diagonal) > 1 else 0)
        before, vector = vector, image
        beside.append(float(np.linalg.norm(image)))
    return float(eigvalsh_tridiagonal(diagonal, beside[1:-1])[-1]) if diagonal else 0.0
