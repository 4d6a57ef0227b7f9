"""The spectrum of kernel PCA: leading eigenpairs of a centred Gram matrix, by the chosen solver.

Lanczos, ARPACK and LAPACK find them if the matrix or its features are in the memory of a CPU, otherwise our own block
Krylov method does.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drkm.gram import Gram, Workload
from drkm.gram.base import center, rounding_of_mean
from drkm.gram.triangle import TriangleGram
from drkm.machine import blas
from drkm.problem.deflation import Pairs, Product, is_complete, is_symmetric, merged, without
from drkm.problem.eigen import LEAST_VALUE, Eigenpairs, leading_eigenpairs, least_residual, workspace_bytes
from drkm.problem.eigen_options import EigenOptions
from drkm.problem.lanczos import leading_by_lanczos
from drkm.problem.lapack import leading_by_lapack, numbers_of_lapack
from drkm.validation import checks
from drkm.validation.callers import level_of_caller

#: up to this many eigenpairs ARPACK uses a basis of three times as many vectors, otherwise of twice as many
FEW = 16
#: most searches for eigenvectors of multiple eigenvalues that earlier searches missed
MOST_ROUNDS = 32
#: if a product leaves less of random numbers than this share of rounding, all eigenvalues are rounding
NOTHING = 1e-3
#: eigenvalues that rounding leaves after centring, in units of eps·tr(K), at least
LEAST_ROUNDINGS = 4.0
#: share of the rounding of sums that is left beside a first eigenvalue that is real: its eigenvector takes up what
#: roundings have in common (measured: a twenty-fifth; of samples that are all equal, two fifths of the whole)
BESIDE_FIRST = 1 / 8
#: error of a sum of squares, in units of its rounding error
ENERGY_ROUNDING = 1e3
#: vectors that Lanczos or ARPACK hold, per eigenpair and besides; random projections per eigenpair, with more of them
KRYLOV_VECTORS, RANDOM_VECTORS, RANDOM_MORE = (7, 60), 9, 10
#: n×k blocks that are alive when eigenvectors become weights, and more where some have no features
RESULT_BLOCKS, ZERO_BLOCKS = 5, 5
#: copies of n×D features that centring and a singular value decomposition hold, and D×D matrices of the latter
CENTRING_COPIES, FEATURE_COPIES, SQUARES = 1.25, 4, 5
#: default residual of our own method, relative to the first eigenvalue
TOL = 1e-12
#: residual, relative to the first eigenvalue, that is worth a warning if none was asked for
WORTH_TELLING = 1e-8
#: products with the matrix in our own method, unless `max_iter` says otherwise
MOST_PASSES = 60
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


def of_gram(gram: Gram, count: int, options: EigenOptions, like: Tensor, means: Tensor | None = None) -> Pairs:
    """Return the leading eigenpairs of CKC, C = I - 11ᵀ/n; a stored K may be overwritten.

    Known means of the rows of K can save the search for missed eigenvectors.
    """
    if isinstance(gram, TriangleGram):
        rounding = torch.finfo(like.dtype).eps * gram.diagonal().sum().item()
        # In a Krylov space these are roundings of sums of n terms.
        most = roundings_of_sum(gram.n) if options.solver_for(gram.n, count) == "krylov" else LEAST_ROUNDINGS
        values, vectors = _of_triangle(gram, count, options, means, most * rounding)
        least = max(LEAST_ROUNDINGS, BESIDE_FIRST * most)
        floor = rounding * (least if values.max() > most * rounding else most)
        return np.where(np.abs(values) > floor, values, 0).astype(values.dtype), vectors
    phi = getattr(gram, "phi", None)
    if phi is not None and not phi.is_cuda:
        # Rounding that is left after the mean is subtracted; eigenvalues have its square.
        floor = rounding_of_mean(gram.n, phi.dtype) ** 2 * gram.diagonal().sum().item()
        return _of_features(center(phi).numpy(), count, options, floor)
    pairs = _by_our_own(gram.centered(), count, options, like)
    return pairs.values.cpu().numpy(), pairs.vectors.cpu().numpy()


def _by_our_own(gram: Gram, count: int, options: EigenOptions, like: Tensor) -> Eigenpairs:
    """Return the leading eigenpairs of a centred matrix, with a warning if they are less accurate than they can be."""
    passes = options.max_iter or MOST_PASSES
    pairs = leading_eigenpairs(gram, count, like=like, tol=options.tol or TOL, max_passes=passes)
    rounding = gram.rounding(like.dtype) / max(pairs.values[0].item(), LEAST_VALUE)
    allowed = max(options.tol or WORTH_TELLING, least_residual(like.dtype), rounding)
    if not pairs.residual <= allowed:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"max_iter: after {passes} products with the kernel matrix the residual of the eigenpairs is "
            f"{pairs.residual:.1g} of the largest eigenvalue, asked for {allowed:.1g}: raise max_iter or tol, or take "
            'device="cpu" with gram="dense"',
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )
    return pairs


def workspace(work: Workload, features: int | None, options: EigenOptions, *, in_memory: bool) -> int:
    """Return the bytes that the components of a workload need besides its samples, their features and their matrix.

    `features` is the number of features that are kept, if they are. `in_memory` says that the matrix, or that of more
    features than samples, is in the memory of a CPU.
    """
    n, count = work.n, work.components
    results = RESULT_BLOCKS * n * count
    if features is not None and work.device.type == "cpu" and not (in_memory and features >= n):
        # At the end the features are centred in place, and multiplied by the eigenvectors.
        centring = int(CENTRING_COPIES * n * features)
        solving = n * features + max(centring, _numbers_of_features(n, features, count, options))
        return work.item * max(solving, centring + results + n * count)
    if not in_memory:
        like = torch.empty(0, dtype=work.dtype, device=work.device)
        return max(workspace_bytes(n, count, options.tol or TOL, like), work.item * results)
    solving = numbers_held(n, count, options)
    # The results take the place of the matrix, which the strategy counts unless it has features.
    needed = max(solving, results - n**2)
    return work.item * (needed if features is None else n**2 + needed)


def numbers_held(n: int, count: int, options: EigenOptions) -> int:
    """Return how many numbers the eigenpairs of a matrix in memory need besides it."""
    solver = options.solver_for(n, count)
    return numbers_of_lapack(n, count) if solver == "dense" else _numbers_of_iterations(n, count, solver)


def _numbers_of_iterations(n: int, count: int, solver: str) -> int:
    per, more = KRYLOV_VECTORS
    return n * (per * count + more if solver == "krylov" else RANDOM_VECTORS * (count + RANDOM_MORE))


def _numbers_of_features(n: int, features: int, count: int, options: EigenOptions) -> int:
    """Return how many numbers `_of_features` holds besides centred features."""
    least = min(n, features)
    some = min(count, least)
    zeros = ZERO_BLOCKS * n * count if some < count else 0
    if options.solver_for(least, some) == "krylov":
        return _numbers_of_iterations(n, some, "krylov") + zeros
    return FEATURE_COPIES * n * features + SQUARES * least**2 + zeros


def of_centered(K: np.ndarray, count: int, options: EigenOptions) -> Pairs:
    """Return the leading eigenpairs of a centred matrix, which may be overwritten."""
    solver = options.solver_for(len(K), count)
    # The BLAS would copy a matrix in columns for every product; only random projections take one that is not symmetric.
    K = K.T if K.flags.f_contiguous and solver != "randomized" else K
    if solver == "krylov":
        return _krylov(blas.symmetric_operator(K), len(K), count, options, K.dtype)
    return leading_by_lapack(K, count) if solver == "dense" else _randomized(K, count, options)


def _of_triangle(gram: TriangleGram, count: int, options: EigenOptions, means: Tensor | None, floor: float) -> Pairs:
    if options.solver_for(gram.n, count) == "krylov":
        upper = gram.K.numpy()
        product = _centered(blas.symmetric_operator(upper), gram.n, upper.dtype)
        thorough = means is None or is_symmetric(means.numpy())
        energy = math.inf if means is None or gram.energy is None else _centered_energy(gram.energy, means)
        known: dict[str, Any] = {"floor": floor, "energy": energy, "thorough": thorough}
        return _krylov(product, gram.n, count, options, upper.dtype, **known)
    K = gram.whole()
    means = K.mean(dim=0)
    return of_centered(K.sub_(means).sub_(means[:, None]).add_(means.mean()).numpy(), count, options)


def _centered_energy(energy: float, means: Tensor) -> float:
    """Return ‖CKC‖_F² = ‖K‖_F² - 2n‖m‖² + (n m̄)², m the means of rows and m̄ that of all, or more by rounding.

    Squares of very small or large kernel values may have left their precision; then nothing is known.
    """
    n, m, info = len(means), means.double(), torch.finfo(means.dtype)
    if not n * n * info.tiny / info.eps < energy < math.inf:
        return math.inf
    total = n * float(m.mean())
    return energy - 2 * n * float(m @ m) + total * total + ENERGY_ROUNDING * info.eps * energy


def _krylov(
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
    if not np.linalg.norm(start) > NOTHING * floor:
        # For constant samples, or tiny ones whose squares vanish, every vector is an eigenvector, and ARPACK fails.
        return np.zeros(count, dtype=dtype), np.eye(n, count, dtype=dtype)
    scaled = _scaled(product, unit)
    found, at_most = _from_start(scaled, start, count, options, energy * unit * unit)
    for _ in range(MOST_ROUNDS):
        if is_complete(scaled, found, options.tol, at_most, thorough=thorough):
            break
        rest = without(scaled, found[1])
        again = rest(start[::-1].copy())
        if not np.linalg.norm(again) > NOTHING * floor:
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
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, dtype = len(start), start.dtype
    if options.solver == "auto" and options.max_iter is None:
        found = leading_by_lanczos(product, start, count, options.tol)
        if found is not None:
            return (found.values, found.vectors), found.rest.largest(energy)
    operator = LinearOperator((n, n), matvec=product, dtype=dtype)
    # ARPACK only passes vectors; for few samples, checks of their shapes would take as long as the products.
    operator.matvec = product
    # For few eigenpairs a restart costs more products than a basis that is long enough to need none.
    basis = min(n, max(20, 3 * count + 4 if count <= FEW else 2 * count + 1))
    pairs = eigsh(operator, count, which="LA", tol=options.tol, maxiter=options.max_iter, v0=start, ncv=basis)
    return pairs, math.inf


def _randomized(K: np.ndarray, count: int, options: EigenOptions) -> Pairs:
    from sklearn.utils.extmath import randomized_svd

    state = options.random_state
    U, values, Vt = randomized_svd(K, count, n_iter=options.power, random_state=state, flip_sign=False)
    # The left and right singular vectors of a negative eigenvalue have opposite signs.
    return values * np.sign(np.einsum("ij,ji->j", U, Vt)), U


def _of_features(phi: np.ndarray, count: int, options: EigenOptions, floor: float) -> Pairs:
    """Return the eigenpairs of ΦΦᵀ for centred Φ, by products with Φ or from its singular value decomposition.

    There are at most as many as features; further ones, and those up to `floor`, have the eigenvalue 0.
    """
    from scipy.linalg import svd

    some = min(count, *phi.shape)
    if options.solver_for(min(phi.shape), some) == "krylov":
        product = _centered(lambda v: phi @ (v @ phi), len(phi), phi.dtype)
        values, vectors = _krylov(product, len(phi), some, options, phi.dtype, floor=floor)
    else:
        vectors, singular, _ = svd(phi, full_matrices=False, check_finite=False)
        values, vectors = singular[:some] ** 2, vectors[:, :some]
    values = np.where(values > floor, values, 0).astype(phi.dtype)
    return (values, vectors) if some == count else _with_zeros(values, vectors, count)


def _with_zeros(values: np.ndarray, vectors: np.ndarray, count: int) -> Pairs:
    """Return eigenpairs, extended to `count` by orthonormal vectors with the eigenvalue 0."""
    others = np.eye(len(vectors), count - len(values), dtype=vectors.dtype)
    others = np.linalg.qr(np.hstack([vectors, others]))[0][:, len(values) :]
    return np.append(values, np.zeros(others.shape[1], dtype=values.dtype)), np.hstack([vectors, others])


def _centered(product: Product, n: int, dtype: np.dtype) -> Product:
    # A dot product takes a fifth of the time of numpy's mean, which matters for few samples.
    average = np.full(n, 1.0 / n, dtype=dtype)

    def centered(v: np.ndarray) -> np.ndarray:
        image = product(v - blas.inner(average, v))
        image -= blas.inner(average, image)
        return image

    return centered


def in_order(pairs: Pairs) -> Spectrum:
    """Return eigenpairs in descending order, with scikit-learn's signs, or raise an error if some are negative."""
    order = pairs[0].argsort()[::-1]
    vectors = pairs[1][:, order]
    # As scikit-learn's `svd_flip`, which for few samples takes as long as their products.
    largest = np.abs(vectors).argmax(axis=0)
    vectors *= np.sign(vectors[largest, np.arange(len(order))])
    return Spectrum(_nonnegative(pairs[0][order]), vectors)


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
