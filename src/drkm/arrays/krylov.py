"""Leading eigenpairs of an operator on arrays, by Lanczos without restarts or ARPACK, none of them missed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from drkm.arrays.deflation import Pairs, Product, is_complete, merged, without
from drkm.arrays.eigen_options import EigenOptions
from drkm.arrays.lanczos import leading_by_lanczos
from drkm.machine import blas
from drkm.validation import checks

#: up to this many eigenpairs ARPACK uses a basis of three times as many vectors, otherwise of twice as many
FEW = 16
#: most searches for eigenvectors of multiple eigenvalues that earlier searches missed
MOST_ROUNDS = 32
#: if a product leaves less of random numbers than this share of rounding, all eigenvalues are rounding
NOTHING = 1e-3


def leading(
    product: Product,
    n: int,
    count: int,
    options: EigenOptions,
    dtype: np.dtype,
    *,
    floor: float = 0.0,
    energy: float = math.inf,
    thorough: bool = True,
) -> Pairs:
    """Return the leading eigenpairs of an operator.

    `floor` bounds what rounding makes of zero eigenvalues, and `energy` is the squared Frobenius norm, if known.
    `thorough` says that multiple eigenvalues are likely, so that the search for missed ones goes on until it is sure.
    """
    # The product that tests the random numbers is not wasted: it is one step of the iteration.
    start = product(_random_numbers(options.random_state).uniform(-1, 1, n).astype(dtype))
    unit = _unit(start)
    start, floor = start * unit, floor * unit
    if not blas.length(start) > NOTHING * floor:
        # For constant samples, or tiny ones whose squares vanish, every vector is an eigenvector, and ARPACK fails.
        return np.zeros(count, dtype=dtype), np.eye(n, count, dtype=dtype)
    scaled = _scaled(product, unit)
    found, at_most = _from_start(scaled, start, count, options, energy * unit * unit)
    for _ in range(MOST_ROUNDS):
        if is_complete(scaled, found, options.tol, at_most, thorough=thorough):
            break
        rest = without(scaled, found[1])
        again = rest(start[::-1].copy())
        if not blas.length(again) > NOTHING * floor:
            # What the search took for a missed eigenvalue was rounding.
            break
        more, at_most = _from_start(rest, again, count, options)
        found = merged(found, more, options.tol)
    return found[0] / unit, found[1]


def _random_numbers(random_state: Any) -> np.random.Generator | np.random.RandomState:
    """Return a generator for a seed, or a random state; one for a seed takes a tenth of the time to make."""
    is_seed = isinstance(random_state, int | np.integer)
    return np.random.default_rng(random_state) if is_seed else checks.random_state(random_state)


def _unit(image: np.ndarray) -> float:
    """Return the power of two that brings an image to a size of about 1, without a change of digits.

    ARPACK's tolerance has an absolute part, and squares of very large or small numbers overflow or vanish.
    """
    return 2.0 ** min(-math.frexp(float(np.abs(image).max()))[1], np.finfo(image.dtype).maxexp - 2)


def _scaled(product: Product, unit: float) -> Product:
    def scaled(v: np.ndarray) -> np.ndarray:
        image = product(v)
        image *= unit
        return image

    return scaled


def _from_start(
    product: Product, start: np.ndarray, count: int, options: EigenOptions, energy: float = math.inf
) -> tuple[Pairs, float]:
    """Return eigenpairs in the Krylov space of a vector, and an upper bound of all other eigenvalues."""
    n, dtype = len(start), start.dtype
    if options.solver == "auto" and options.max_iter is None:
        found = leading_by_lanczos(product, start, count, options.tol)
        if found is not None:
            return (found.values, found.vectors), found.rest.largest(energy)
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((n, n), matvec=product, dtype=dtype)
    # ARPACK only passes vectors; for few samples, checks of their shapes would take as long as the products.
    operator.matvec = product
    # For few eigenpairs a restart costs more products than a basis that is long enough to need none.
    basis = min(n, max(20, 3 * count + 4 if count <= FEW else 2 * count + 1))
    pairs = eigsh(operator, count, which="LA", tol=options.tol, maxiter=options.max_iter, v0=start, ncv=basis)
    return pairs, math.inf


def centered(product: Product, n: int, dtype: np.dtype) -> Product:
    """Return the operator CKC, C = I - 11ᵀ/n."""
    # A dot product takes a fifth of the time of numpy's mean, which matters for few samples.
    average = np.full(n, 1.0 / n, dtype=dtype)

    def both_sides(v: np.ndarray) -> np.ndarray:
        image = product(v - blas.inner(average, v))
        image -= blas.inner(average, image)
        return image

    return both_sides
