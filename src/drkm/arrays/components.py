"""The fit of kernel PCA to arrays: components, and the weights for codes of new points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drkm.arrays import eigenpairs, half
from drkm.arrays.deflation import Pairs
from drkm.arrays.eigen_options import EigenOptions
from drkm.arrays.eigenpairs import Spectrum
from drkm.arrays.means import column_means, remove_mean_, rounding_of_mean
from drkm.machine import blas, pages
from drkm.machine.layout import slices
from drkm.machine.threads import FEW_PRODUCTS, SMALL, one_thread_of_blas

#: entries of a matrix and its transpose count as equal if they differ by at most this share of the largest one; rows
#: that are compared at a time
SYMMETRIC, ROWS = 1e-6, 64


class Components(NamedTuple):
    """Eigenpairs of a centred kernel matrix, and codes k(x, X)A - b (φ(x)A - b with explicit features).

    values, vectors : eigenpairs
    weights : A, (n×k) or (D×k)
    shift : b
    """

    values: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray
    shift: np.ndarray


def of_points(kernel: Any, X: np.ndarray, count: int, options: EigenOptions, *, keep_zeros: bool) -> Components:
    """Return the components of the rows of X, for the form of a kernel."""
    n, d = X.shape
    is_small = n**2 < SMALL
    with one_thread_of_blas(is_small and n**2 * d < FEW_PRODUCTS):
        K = half.of_points(kernel, X, several_threads=not is_small)
    with one_thread_of_blas(is_small):
        means = blas.symmetric_product(K.K, np.full(n, 1.0 / n, dtype=X.dtype))
        pairs = eigenpairs.of_half(K, count, options, means)
    # The rest fits into the memory of the kernel matrix.
    del K
    return _of_values(kept(pairs, keep_zeros), means)


def of_features(
    features: Callable[[], np.ndarray],
    count: int,
    options: EigenOptions,
    *,
    keep_zeros: bool,
    beyond_rank: bool = True,
    by_matrix: bool = True,
) -> Components:
    """Return the components of samples with explicit features, which are centred before they are multiplied.

    Sums of features far from zero would lose the digits in which they differ.

    Parameters
    ----------
    features : callable
        Returns the features, in memory of their own.
    count : int
        Number of components.
    options : EigenOptions
    keep_zeros : bool
        Whether components with the eigenvalue 0 are returned.
    beyond_rank : bool
        Whether there may be more components than features.
    by_matrix : bool
        Whether the eigenpairs of at least as many features as samples are those of their Gram matrix.
    """
    phi = features()
    n, width = phi.shape
    count = count if beyond_rank else min(count, width)
    with one_thread_of_blas(n**2 < SMALL):
        total = float(np.einsum("ij,ij->", phi, phi))
        mean = remove_mean_(phi)
        if width >= n and by_matrix:
            K = half.of_centered(phi)
            # While the matrix is in use, the features would take more memory than it.
            del phi
            pairs = eigenpairs.of_half(K, count, options)
            del K
            phi = features()
            remove_mean_(phi)
        else:
            # Rounding that is left after the mean is subtracted; eigenvalues have its square.
            floor = rounding_of_mean(n, float(np.finfo(phi.dtype).eps)) ** 2 * total
            pairs = eigenpairs.of_features(phi, count, options, floor)
        found = kept(pairs, keep_zeros)
        weights = phi.T @ weights_of(found)
    return Components(*found, weights, mean @ weights)


def of_matrix(K: np.ndarray, count: int, options: EigenOptions, *, keep_zeros: bool) -> Components:
    """Return the components of a kernel matrix, which is overwritten; it need not be symmetric to be centred."""
    symmetric, row_means = _is_symmetric(K), K.mean(axis=1)
    means = row_means if symmetric else column_means(K)
    K -= means
    K -= row_means[:, None]
    K += means.mean()
    # Random projections need no symmetry. For others the lower triangle counts, as for scikit-learn's dense solver.
    if not symmetric and options.solver != "randomized":
        half.mirrored_(K.T)
    return _of_values(kept(eigenpairs.of_centered(K, count, options), keep_zeros), means)


def _is_symmetric(K: np.ndarray) -> bool:
    """Whether a matrix and its transpose differ by no more than rounding."""
    tolerance = SYMMETRIC * max(abs(float(K.max())), abs(float(K.min())))
    blocks = slices(len(K), ROWS)
    return all(np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max() <= tolerance for rows in blocks)


def kept(pairs: Pairs, keep_zeros: bool) -> Spectrum:
    """Return eigenpairs in descending order, without those of zero eigenvalues unless these are to be kept."""
    found = eigenpairs.in_order(pairs)
    positive = found.values > 0
    return found if keep_zeros or positive.all() else Spectrum(found.values[positive], found.vectors[:, positive])


def _of_values(found: Spectrum, means: np.ndarray) -> Components:
    """Return components whose weights multiply kernel values, given the means of the rows of the kernel matrix."""
    weights = weights_of(found)
    return Components(*found, weights, means @ weights)


def weights_of(found: Spectrum) -> np.ndarray:
    """Return A = V/√λ with centred columns; those of zero eigenvalues are zero."""
    values, vectors = found
    scale = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    # LAPACK returns columns. In aligned rows, as in a file, products have the same bits before and after `load`.
    weights = pages.empty(vectors.size, vectors.dtype).reshape(vectors.shape)
    np.multiply(vectors, scale, out=weights)
    weights -= weights.mean(axis=0)
    return weights
