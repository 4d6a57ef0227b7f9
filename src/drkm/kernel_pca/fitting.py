"""The fit of `KernelPCA`: by torch for kernels of ours, else by scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from drkm.kernel_pca import inverse, precision, samples
from drkm.kernel_pca.parameters import is_auto, kernel_choice, learns_inverse
from drkm.kernels import Kernel
from drkm.kernels.scikit_learn import KernelChoice
from drkm.problem.spectrum import EigenOptions
from drkm.training import kernel_components, parameters
from drkm.training.kernel_components import KernelComponents
from drkm.validation import checks


def fitted(rows: Any, X: Any, chosen: Mapping[str, Any], options: EigenOptions) -> tuple[Any, KernelComponents]:
    """Return the samples that a model keeps and their components, from the samples that were read from X.

    The samples are a tensor if torch computes their kernel, else an array, which may be sparse.
    """
    choice = kernel_choice(chosen)
    gamma = choice.gamma_of(rows.shape[1])
    own = None if checks.is_sparse(rows) else choice.own(gamma)
    if own is None:
        return _by_scikit_learn(rows, X, choice, chosen, options)
    kept = samples.for_torch(rows, X, chosen["device"], chosen["dtype"])
    inverse.check_search(chosen["preimage"], own, choice.kernel)
    found = _by_torch(kept, own, gamma, chosen, options)
    # Copied last, into memory that the kernel matrix has left.
    return samples.own_copy(kept, X) if chosen["copy_X"] else kept, found


def _by_scikit_learn(
    rows: Any, X: Any, choice: KernelChoice, chosen: Mapping[str, Any], options: EigenOptions
) -> tuple[Any, KernelComponents]:
    gram, kernel = chosen["gram"], choice.kernel
    if not isinstance(gram, str) or gram not in ("auto", "dense"):
        raise ValueError(f"gram: {gram!r} needs dense samples and a kernel of ours, got {kernel!r}")
    if learns_inverse(chosen) and checks.is_sparse(rows):
        raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
    inverse.check_search(chosen["preimage"], None, kernel)
    kept = samples.for_scikit_learn(rows, X, copy=chosen["copy_X"])
    # What numpy would warn of is refused in the next lines; a sum holds no second matrix.
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(choice.scikit(choice.gamma_of(kept.shape[1]))(kept))
        is_finite = np.isfinite(K.sum())
    if not is_finite:
        raise ValueError(f"kernel: {kernel!r} has values on these samples that are NaN or infinite")
    return kept, kernel_components.of_matrix(K, chosen["n_components"], options, keep_zeros=_keeps_zeros(chosen))


def _by_torch(
    X: Tensor, kernel: Kernel, gamma: float, chosen: Mapping[str, Any], options: EigenOptions
) -> KernelComponents:
    # Kernels with scikit-learn's names have numbers for parameters already.
    kernel = kernel.resolve(X, layer=1) if kernel is chosen["kernel"] else kernel
    largest = precision.check_size(kernel, X)
    may_change = is_auto(chosen["dtype"])
    X = precision.for_centring(kernel, X) if may_change else X
    # Those that were given as objects checked their bandwidth when it was resolved.
    if kernel.is_isotropic and kernel is not chosen["kernel"]:
        X = precision.for_distances(kernel, X, largest, gamma, may_change=may_change)
    strategy = parameters.strategy(chosen["gram"])
    if strategy.shares:
        raise ValueError(f"gram: {chosen['gram']!r} shares samples among processes: use ConstrDRKM(center=True)")
    return kernel_components.of_samples(
        X, kernel, chosen["n_components"], options, strategy, keep_zeros=_keeps_zeros(chosen)
    )


def _keeps_zeros(chosen: Mapping[str, Any]) -> bool:
    return chosen["n_components"] is not None and not chosen["remove_zero_eig"]
