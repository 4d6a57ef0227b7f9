"""The fit of kernel PCA: components of samples or of a kernel matrix, and the weights for codes of new points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drkm import gram as grams
from drkm.files.rows import slices
from drkm.gram import Auto, Dense, FeatureGram, Gram, Strategy
from drkm.gram.base import remove_mean_
from drkm.gram.triangle import mirrored_, triangle, triangle_of_features
from drkm.kernels import Kernel
from drkm.machine.layout import aligned
from drkm.machine.threads import FEW_PRODUCTS, SMALL, one_thread, one_thread_of_blas
from drkm.problem import spectrum
from drkm.problem.deflation import Pairs
from drkm.problem.eigen_options import EigenOptions
from drkm.problem.energy import workload
from drkm.problem.spectrum import Spectrum
from drkm.wording import dtype_name

#: entries of a matrix and its transpose count as equal if they differ by at most this share of the largest one; rows
#: that are compared at a time
SYMMETRIC, ROWS = 1e-6, 64


class KernelComponents(NamedTuple):
    """Eigenpairs of a centred kernel matrix, and codes k(x, X)A - b (φ(x)A - b with explicit features).

    kernel : the kernel that was computed; None if a kernel matrix was given, also one by scikit-learn
    values, vectors : eigenpairs
    weights : A, (n×k) or (D×k)
    shift : b
    """

    kernel: Kernel | None
    values: np.ndarray
    vectors: np.ndarray
    weights: Tensor
    shift: Tensor

    def to(self, dtype: torch.dtype) -> KernelComponents:
        """Return them in another precision."""
        name, A, b = dtype_name(dtype), self.weights.to(dtype), self.shift.to(dtype)
        return KernelComponents(self.kernel, self.values.astype(name), self.vectors.astype(name), A, b)


def of_samples(
    X: Tensor,
    kernel: Kernel,
    count: int | None,
    options: EigenOptions,
    strategy: Strategy,
    *,
    keep_zeros: bool,
) -> KernelComponents:
    """Return the components of the rows of X for a kernel whose parameters are numbers; by default all components."""
    n = len(X)
    strategy, wanted = _settled(X, kernel, count, options, strategy)
    exact, kernel = kernel, strategy.approximate(kernel, X, layer=1)
    is_small = n**2 < SMALL
    with one_thread(is_small):
        with one_thread_of_blas(is_small and n**2 * X.shape[1] < FEW_PRODUCTS):
            gram = _operator(kernel, X, strategy)
        phi = getattr(gram, "phi", None)
        if phi is not None and (count is None or kernel is not exact):
            wanted = min(wanted, phi.shape[1])
        with one_thread_of_blas(is_small):
            means = None if kernel.is_explicit else gram.matmul(X.new_full((n, 1), 1.0 / n))[:, 0]
            pairs = spectrum.of_gram(gram, wanted, options, X, means)
    # The rest fits into the memory of the kernel matrix.
    del gram
    found = _kept(pairs, keep_zeros)
    weights = _weights(found, X)
    if means is None:
        phi = kernel.features(X).detach().clone() if phi is None else phi
        means = phi.mean(dim=0)
        # In their own memory. Sums of features far from zero would lose the digits in which they differ.
        weights = remove_mean_(phi).T @ weights
    return KernelComponents(kernel, *found, weights, means @ weights)


def _settled(
    X: Tensor, kernel: Kernel, count: int | None, options: EigenOptions, strategy: Strategy
) -> tuple[Strategy, int]:
    """Return the strategy that will be used, after a check that its memory suffices, and the number of components."""
    n = len(X)
    features = strategy.feature_count(workload(X, [kernel], (1,)))
    wanted = min(n, count or features or n)
    work = workload(X, [kernel], (wanted,))
    stored, other = (
        replace(work, workspace=spectrum.workspace(work, features, options, in_memory=in_memory))
        for in_memory in (not X.is_cuda, False)
    )
    if type(strategy) is Auto:
        # On a CPU half of the matrix is stored if it fits. Otherwise another solver needs another workspace.
        is_stored = not X.is_cuda and grams.fits(Dense(), stored)
        strategy = Dense() if is_stored else type(strategy.settle(other))()
    return grams.settle(strategy, stored if type(strategy) is Dense else other)[0], wanted


def of_matrix(K: np.ndarray, count: int | None, options: EigenOptions, *, keep_zeros: bool) -> KernelComponents:
    """Return the components of a kernel matrix, which is overwritten; it need not be symmetric to be centred."""
    wanted = len(K) if count is None else min(count, len(K))
    symmetric, means, row_means = _is_symmetric(K), K.mean(axis=0), K.mean(axis=1)
    K -= means
    K -= row_means[:, None]
    K += means.mean()
    # Random projections need no symmetry. For others the lower triangle counts, as for scikit-learn's dense solver.
    if not symmetric and options.solver != "randomized":
        mirrored_(torch.from_numpy(K).T)
    found = _kept(spectrum.of_centered(K, wanted, options), keep_zeros)
    weights = _weights(found, torch.from_numpy(means))
    return KernelComponents(None, *found, weights, torch.from_numpy(means) @ weights)


def _is_symmetric(K: np.ndarray) -> bool:
    """Whether a matrix and its transpose differ by no more than rounding."""
    tolerance = SYMMETRIC * max(abs(float(K.max())), abs(float(K.min())))
    blocks = slices(len(K), ROWS)
    return all(np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max() <= tolerance for rows in blocks)


def _operator(kernel: Any, X: Tensor, strategy: Strategy) -> Gram:
    """Return the kernel matrix as features if there are fewer than samples, as half a matrix, or as `strategy` says."""
    if type(strategy) is not Dense or X.is_cuda:
        return strategy.fixed(kernel, X)
    if kernel.is_explicit:
        features = FeatureGram(kernel, X)
        return features if features.phi.shape[1] < len(X) else triangle_of_features(features.phi)
    return triangle(kernel, X)


def _kept(pairs: Pairs, keep_zeros: bool) -> Spectrum:
    found = spectrum.in_order(pairs)
    positive = found.values > 0
    return found if keep_zeros or positive.all() else Spectrum(found.values[positive], found.vectors[:, positive])


def _weights(found: Spectrum, like: Tensor) -> Tensor:
    """Return A = V/√λ with centred columns; those of zero eigenvalues are zero."""
    values = torch.from_numpy(found.values).to(like)
    scale = torch.where(values > 0, values, 1.0).rsqrt() * (values > 0)
    # LAPACK returns columns. In rows, as in a file, products have the same bits before and after `load`.
    weights = aligned(torch.from_numpy(found.vectors).to(like) * scale)
    return weights - weights.mean(dim=0)
