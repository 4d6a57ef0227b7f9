"""The fit of `KernelPCA`: by torch for kernels of ours, else by scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.arrays.eigen_options import EigenOptions
from drkm.arrays.eigenpairs import numbers_held
from drkm.kernel_pca import by_torch, inverse, precision, ridge, samples
from drkm.kernel_pca.choice import KernelChoice
from drkm.kernel_pca.codes import are_few
from drkm.kernel_pca.parameters import (
    component_count,
    is_auto,
    is_precomputed,
    keeps_zeros,
    kernel_choice,
    learns_inverse,
)
from drkm.kernel_pca.results import Results
from drkm.kernel_pca.samples import Given
from drkm.kernels import Kernel
from drkm.machine import memory
from drkm.machine.threads import one_thread
from drkm.training import kernel_components, parameters
from drkm.training.kernel_components import KernelComponents
from drkm.validation import checks


def fitted(rows: Any, X: Any, chosen: Mapping[str, Any], options: EigenOptions) -> Results:
    """Return the results of a fit to the samples that were read from X, which may be sparse."""
    with one_thread(are_few(X)):
        kept, found = _components(rows, X, chosen, options)
        return by_torch.results(kept, found, X, kernel_choice(chosen))


def _components(rows: Any, X: Any, chosen: Mapping[str, Any], options: EigenOptions) -> tuple[Any, KernelComponents]:
    """Return the samples that a model keeps and their components.

    The samples are a tensor if torch computes their kernel, else an array, which may be sparse.
    """
    choice = kernel_choice(chosen)
    gamma = choice.gamma_of(rows.shape[1])
    if learns_inverse(chosen):
        ridge.check_room(rows.shape[0], rows.dtype.itemsize)
    own = choice.own(gamma)
    if own is choice.kernel:
        _check_object(own, rows)
    if own is None or checks.is_sparse(rows):
        return _by_scikit_learn(rows, X, choice, chosen, options)
    given = samples.Given(samples.as_tensor(rows), X)
    kept = given.placed(chosen["device"], chosen["dtype"])
    inverse.check_search(chosen["preimage"], own, choice.kernel)
    used, found = _by_torch(kept, given, own, gamma, chosen, options)
    # Samples of float32 stay as they are, though their kernel values may need more digits.
    kept = kept if given.tensor.dtype == torch.float32 else used
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
    asked = samples.asked_precision(chosen["device"], chosen["dtype"])
    kept = samples.for_scikit_learn(rows, X, asked, copy=chosen["copy_X"])
    if is_precomputed(kernel):
        _check_square(kept)
    else:
        _check_room(kept, chosen, options)
    # What numpy would warn of is refused in the next lines; extremes hold no second matrix, and pass on NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(choice.scikit(choice.gamma_of(kept.shape[1]))(kept))
        # It is centred in place; a given one may be read-only, as that of a data frame is.
        K = np.require(K, requirements="W")
        is_finite = np.isfinite(K.min()) and np.isfinite(K.max())
    if not is_finite:
        raise ValueError(f"kernel: {kernel!r} has values on these samples that are NaN or infinite")
    found = kernel_components.of_matrix(K, component_count(chosen), options, keep_zeros=keeps_zeros(chosen))
    return kept, found if asked is None else found.to(asked)


def _check_square(K: Any) -> None:
    n, columns = K.shape
    if n != columns:
        raise ValueError(f'X: expected a square matrix for kernel="precomputed", got {n}×{columns}')


def _check_room(X: Any, chosen: Mapping[str, Any], options: EigenOptions) -> None:
    """Raise an error if the kernel matrix that scikit-learn forms, and its decomposition, do not fit into memory."""
    n, told = X.shape[0], f"kernel: {chosen['kernel']!r}, whose matrix scikit-learn forms,"
    numbers = n * n + numbers_held(n, min(n, component_count(chosen) or n), options)
    memory.require(numbers * X.dtype.itemsize, "cpu", f"{told} for {n} samples", "take a kernel of ours")


def _check_object(kernel: Any, rows: Any) -> None:
    """Raise an error if a kernel object cannot be used for these samples, or needs a training that there is not."""
    name = type(kernel).__name__
    if checks.is_sparse(rows):
        raise TypeError(f"X: expected dense samples for the kernel object {name}, got a sparse matrix: use .toarray()")
    if kernel.trainable:
        raise ValueError(
            f"kernel: expected a {name} with trainable=False, because KernelPCA trains no parameters, got "
            "trainable=True: use ConstrDRKM(center=True)"
        )


def _by_torch(
    X: Tensor, given: Given, kernel: Kernel, gamma: float, chosen: Mapping[str, Any], options: EigenOptions
) -> tuple[Tensor, KernelComponents]:
    """Return the samples in the precision of their kernel values, and their components."""
    may_change = is_auto(chosen["dtype"])
    kernel, X, is_object = *_resolved(kernel, X, given, chosen), kernel is chosen["kernel"]
    largest, before = precision.check_size(kernel, X), X
    X = precision.for_centring(kernel, X, given) if may_change else X
    # Those that were given as objects checked their bandwidth when it was resolved.
    if kernel.is_isotropic and not is_object:
        X = precision.for_distances(kernel, X, given, largest, gamma, may_change=may_change)
    if is_object and X is not before:
        kernel = _with_digits(kernel, X, given, chosen)
    strategy = parameters.strategy(chosen["gram"])
    if strategy.shares:
        raise ValueError(f"gram: {chosen['gram']!r} shares samples among processes: use ConstrDRKM(center=True)")
    count, keep_zeros = component_count(chosen), keeps_zeros(chosen)
    found = kernel_components.of_samples(X, kernel, count, options, strategy, keep_zeros=keep_zeros)
    return X, found


def _resolved(kernel: Kernel, X: Tensor, given: Given, chosen: Mapping[str, Any]) -> tuple[Kernel, Tensor]:
    """Return the kernel with numbers for its parameters, and samples with the digits that its bandwidth needs."""
    if kernel is not chosen["kernel"]:
        # Kernels with scikit-learn's names have numbers already.
        return kernel, X
    rounded = X
    if is_auto(chosen["dtype"]):
        kernel, X = precision.for_width(kernel, X, given)
    kernel = kernel.resolve(X, layer=1)
    return kernel if X is rounded else _with_digits(kernel, X, given, chosen), X


def _with_digits(kernel: Kernel, X: Tensor, given: Given, chosen: Mapping[str, Any]) -> Kernel:
    """Return a resolved kernel object for samples that were rounded before; rules see the same numbers in float32."""
    was_rounded = given.tensor.dtype != torch.float32
    return chosen["kernel"].resolve(X, layer=1) if was_rounded or kernel.original is not kernel else kernel
