"""Leading eigenpairs of kernel PCA from arrays: of half a kernel matrix, of a centred matrix, and of features."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drkm.arrays import krylov
from drkm.arrays.deflation import Pairs, is_symmetric
from drkm.arrays.eigen_options import EigenOptions
from drkm.arrays.half import Half
from drkm.arrays.lapack import leading_by_lapack, numbers_of_lapack
from drkm.machine import blas

#: eigenvalues that rounding leaves after centring, in units of eps·tr(K), at least
LEAST_ROUNDINGS = 4.0
#: share of the rounding of sums that is left beside a first eigenvalue that is real: its eigenvector takes up what
#: roundings have in common (measured: a twenty-fifth; of samples that are all equal, two fifths of the whole)
BESIDE_FIRST = 1 / 8
#: error of a sum of squares, in units of its rounding error
ENERGY_ROUNDING = 1e3
#: vectors that Lanczos or ARPACK hold, per eigenpair and besides; random projections per eigenpair, with more of them
KRYLOV_VECTORS, RANDOM_VECTORS, RANDOM_MORE = (7, 60), 9, 10
#: copies of n×D features and D×D matrices that a singular value decomposition holds, and n×k blocks where some
#: components have no features
FEATURE_COPIES, SQUARES, ZERO_BLOCKS = 4, 5, 5
#: eigenvalues below minus these (relative to the largest one, and absolute) are an error; positive ones below the last,
#: again relative, are rounding
NEGATIVE_SHARE = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 5e-3}
NEGATIVE_VALUE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
ROUNDING_SHARE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-7}


class Spectrum(NamedTuple):
    """Eigenvalues in descending order, none negative, and their eigenvectors with signs by their largest entry."""

    values: np.ndarray
    vectors: np.ndarray


def roundings_of_sum(n: int) -> float:
    """Return the error of a sum of n terms in units of one rounding, if roundings are independent."""
    return max(LEAST_ROUNDINGS, math.sqrt(n))


def numbers_held(n: int, count: int, options: EigenOptions) -> int:
    """Return how many numbers the eigenpairs of a matrix in memory need besides it."""
    solver = options.solver_for(n, count)
    return numbers_of_lapack(n, count) if solver == "dense" else numbers_of_iterations(n, count, solver)


def numbers_of_iterations(n: int, count: int, solver: str) -> int:
    """Return how many numbers a method of products holds."""
    per, more = KRYLOV_VECTORS
    return n * (per * count + more if solver == "krylov" else RANDOM_VECTORS * (count + RANDOM_MORE))


def numbers_of_features(n: int, features: int, count: int, options: EigenOptions) -> int:
    """Return how many numbers `of_features` holds besides centred features."""
    least = min(n, features)
    some = min(count, least)
    zeros = ZERO_BLOCKS * n * count if some < count else 0
    if options.solver_for(least, some) == "krylov":
        return numbers_of_iterations(n, some, "krylov") + zeros
    return FEATURE_COPIES * n * features + SQUARES * least**2 + zeros


def of_half(half: Half, count: int, options: EigenOptions, means: np.ndarray | None = None) -> Pairs:
    """Return the leading eigenpairs of CKC, C = I - 11ᵀ/n; K may be overwritten.

    Known means of the rows of K can save the search for missed eigenvectors.
    """
    n, kind = len(half.K), half.K.dtype
    rounding = float(np.finfo(kind).eps) * float(half.K.diagonal().sum())
    is_krylov = options.solver_for(n, count) == "krylov"
    # In a Krylov space these are roundings of sums of n terms.
    most = roundings_of_sum(n) if is_krylov else LEAST_ROUNDINGS
    if is_krylov:
        product = krylov.centered(blas.symmetric_operator(half.K), n, kind)
        known: dict[str, Any] = {"floor": most * rounding}
        if means is not None:
            known |= {"energy": _centered_energy(half.energy, means), "thorough": is_symmetric(means)}
        values, vectors = krylov.leading(product, n, count, options, kind, **known)
    else:
        K = half.whole()
        # Along rows numpy adds in pairs, to fewer roundings than the floor below.
        row_means = K.mean(axis=1)
        K -= row_means
        K -= row_means[:, None]
        K += row_means.mean()
        values, vectors = of_centered(K, count, options)
    least = max(LEAST_ROUNDINGS, BESIDE_FIRST * most)
    floor = rounding * (least if values.max() > most * rounding else most)
    return np.where(np.abs(values) > floor, values, 0).astype(kind), vectors


def of_centered(K: np.ndarray, count: int, options: EigenOptions) -> Pairs:
    """Return the leading eigenpairs of a centred matrix, which may be overwritten."""
    solver = options.solver_for(len(K), count)
    # The BLAS would copy a matrix in columns for every product; only random projections take one that is not symmetric.
    K = K.T if K.flags.f_contiguous and solver != "randomized" else K
    if solver == "krylov":
        return krylov.leading(blas.symmetric_operator(K), len(K), count, options, K.dtype)
    return leading_by_lapack(K, count) if solver == "dense" else _randomized(K, count, options)


def of_features(phi: np.ndarray, count: int, options: EigenOptions, floor: float) -> Pairs:
    """Return the eigenpairs of ΦΦᵀ for centred Φ, by products with Φ or from its singular value decomposition.

    There are at most as many as features; further ones, and those up to `floor`, have the eigenvalue 0.
    """
    from scipy.linalg import svd

    some = min(count, *phi.shape)
    if options.solver_for(min(phi.shape), some) == "krylov":
        product = krylov.centered(lambda v: phi @ (v @ phi), len(phi), phi.dtype)
        values, vectors = krylov.leading(product, len(phi), some, options, phi.dtype, floor=floor)
    else:
        vectors, singular, _ = svd(phi, full_matrices=False, check_finite=False)
        values, vectors = singular[:some] ** 2, vectors[:, :some]
    values = np.where(values > floor, values, 0).astype(phi.dtype)
    return (values, vectors) if some == count else _with_zeros(values, vectors, count)


def in_order(pairs: Pairs) -> Spectrum:
    """Return eigenpairs in descending order, with scikit-learn's signs, or raise an error if some are negative."""
    order = pairs[0].argsort()[::-1]
    vectors = pairs[1][:, order]
    # As scikit-learn's `svd_flip`, which for few samples takes as long as their products.
    largest = np.abs(vectors).argmax(axis=0)
    vectors *= np.sign(vectors[largest, np.arange(len(order))])
    return Spectrum(_nonnegative(pairs[0][order]), vectors)


def _centered_energy(energy: float, means: np.ndarray) -> float:
    """Return ‖CKC‖_F² = ‖K‖_F² - 2n‖m‖² + (n m̄)², m the means of rows and m̄ that of all, or more by rounding.

    Squares of very small or large kernel values may have left their precision; then nothing is known.
    """
    n, m, info = len(means), means.astype(np.float64), np.finfo(means.dtype)
    if not n * n * float(info.tiny) / float(info.eps) < energy < math.inf:
        return math.inf
    total = n * float(m.mean())
    return energy - 2 * n * blas.inner(m, m) + total * total + ENERGY_ROUNDING * float(info.eps) * energy


def _randomized(K: np.ndarray, count: int, options: EigenOptions) -> Pairs:
    from sklearn.utils.extmath import randomized_svd

    state = options.random_state
    U, values, Vt = randomized_svd(K, count, n_iter=options.power, random_state=state, flip_sign=False)
    # The left and right singular vectors of a negative eigenvalue have opposite signs.
    return values * np.sign(np.einsum("ij,ji->j", U, Vt)), U


def _with_zeros(values: np.ndarray, vectors: np.ndarray, count: int) -> Pairs:
    """Return eigenpairs, extended to `count` by orthonormal vectors with the eigenvalue 0."""
    others = np.eye(len(vectors), count - len(values), dtype=vectors.dtype)
    others = np.linalg.qr(np.hstack([vectors, others]))[0][:, len(values) :]
    return np.append(values, np.zeros(others.shape[1], dtype=values.dtype)), np.hstack([vectors, others])


def _nonnegative(values: np.ndarray) -> np.ndarray:
    """Return eigenvalues with rounding set to 0, or raise an error if the kernel is not positive semi-definite."""
    if not len(values):
        # Features of samples that are all zero may have no columns.
        return values
    largest, smallest, kind = values[0], values[-1], values.dtype
    if smallest < -NEGATIVE_SHARE[kind] * max(largest, 0) and smallest < -NEGATIVE_VALUE[kind]:
        raise ValueError(
            f"kernel: There are significant negative eigenvalues ({smallest:.3g}, the largest is {largest:.3g}): it is "
            "not positive semi-definite, take fewer components or another kernel"
        )
    return np.where(values < max(ROUNDING_SHARE[kind] * largest, 0), 0, values).astype(kind)
