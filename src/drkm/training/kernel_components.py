"""The fit of kernel PCA to tensors: components of samples or of a kernel matrix, and weights for new points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drkm import gram as grams
from drkm.arrays import components, forms
from drkm.arrays.components import Components
from drkm.arrays.eigen_options import EigenOptions
from drkm.gram import Auto, Dense, Strategy
from drkm.gram.base import remove_mean_
from drkm.kernels import Kernel
from drkm.kernels.base import KINDS
from drkm.machine.threads import SMALL, one_thread, one_thread_of_blas
from drkm.problem import spectrum
from drkm.problem.energy import workload
from drkm.wording import dtype_name


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

    @classmethod
    def of(cls, kernel: Kernel | None, found: Components) -> KernelComponents:
        """Return components that were found with arrays."""
        return cls(kernel, found.values, found.vectors, torch.from_numpy(found.weights), torch.from_numpy(found.shift))

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
    strategy, wanted = _settled(X, kernel, count, options, strategy)
    used: Any = strategy.approximate(kernel, X, layer=1)
    # An approximation has no components beyond its features.
    beyond_rank = count is not None and used is kernel
    with one_thread(len(X) ** 2 < SMALL):
        if X.is_cuda or not (used.is_explicit or type(strategy) is Dense):
            return _of_operator(X, used, wanted, options, strategy, keep_zeros=keep_zeros, beyond_rank=beyond_rank)
        if used.is_explicit:
            found = components.of_features(
                _features(used, X),
                wanted,
                options,
                keep_zeros=keep_zeros,
                beyond_rank=beyond_rank,
                by_matrix=type(strategy) is Dense,
            )
        else:
            found = components.of_points(form_of(used, X), X.numpy(), wanted, options, keep_zeros=keep_zeros)
        return KernelComponents.of(used, found)


def of_matrix(K: np.ndarray, count: int | None, options: EigenOptions, *, keep_zeros: bool) -> KernelComponents:
    """Return the components of a kernel matrix, which is overwritten; it need not be symmetric to be centred."""
    wanted = len(K) if count is None else min(count, len(K))
    return KernelComponents.of(None, components.of_matrix(K, wanted, options, keep_zeros=keep_zeros))


def form_of(kernel: Any, X: Tensor) -> Any:
    """Return the form of a pairwise kernel, of which all values of the samples are needed."""
    if not kernel.is_pairwise:
        raise TypeError(f"kernel: {type(kernel).__name__} has no Gram matrix that can be formed by halves")
    own = forms.named(type(kernel).__name__, kernel.parameters, len(X) ** 2) if _is_ours(kernel) else None
    return own or forms.OfTorch(kernel)


def _features(kernel: Any, X: Tensor) -> Callable[[], np.ndarray]:
    """Return the explicit features of samples as a function, as `drkm.kernel_pca.by_numpy` computes them if it can."""
    own = forms.FEATURES.get(type(kernel).__name__) if _is_ours(kernel) else None
    return (lambda: kernel.table(X).numpy()) if own is None else partial(own, X.numpy())


def _is_ours(kernel: Any) -> bool:
    """Whether a kernel is not one of the user's that has the name of one of ours."""
    return KINDS.get(type(kernel).__name__) is type(kernel)


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


def _of_operator(
    X: Tensor,
    kernel: Any,
    count: int,
    options: EigenOptions,
    strategy: Strategy,
    *,
    keep_zeros: bool,
    beyond_rank: bool,
) -> KernelComponents:
    """Return the components by products with the kernel matrix, on a GPU or in tiles."""
    n = len(X)
    gram = strategy.fixed(kernel, X)
    phi = getattr(gram, "phi", None)
    if phi is not None and not beyond_rank:
        count = min(count, phi.shape[1])
    with one_thread_of_blas(n**2 < SMALL):
        means = None if kernel.is_explicit else gram.matmul(X.new_full((n, 1), 1.0 / n))[:, 0]
        pairs = spectrum.of_gram(gram.centered(), count, options, X)
    # The rest fits into the memory of the kernel matrix.
    del gram
    found = components.kept((pairs.values.cpu().numpy(), pairs.vectors.cpu().numpy()), keep_zeros)
    weights = torch.from_numpy(components.weights_of(found)).to(X)
    if means is None:
        phi = kernel.table(X) if phi is None else phi
        means = phi.mean(dim=0)
        # In their own memory. Sums of features far from zero would lose the digits in which they differ.
        weights = remove_mean_(phi).T @ weights
    return KernelComponents(kernel, *found, weights, means @ weights)
