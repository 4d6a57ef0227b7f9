"""Samples, points and codes that are passed to `KernelPCA`: arrays, sparse matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm import inputs
from drkm.kernel_pca.parameters import is_auto, is_precomputed
from drkm.machine.threads import SMALL
from drkm.training import parameters


def read(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate samples and return them as an array, which may be sparse, or as a tensor."""
    if isinstance(X, Tensor):
        return inputs.read(estimator, X, reset=reset)
    sparse = False if is_precomputed(estimator.kernel) else "csr"
    return inputs.checked(estimator, X, reset=reset, accept_sparse=sparse, dtype=(np.float64, np.float32))


def for_torch(samples: Any, X: Any, device: Any, dtype: Any) -> Tensor:
    """Return the samples that were read from X as a tensor, on the device and in the precision of a fit."""
    tensor = as_tensor(samples)
    where = parameters.device(device, X.device if isinstance(X, Tensor) else None, len(tensor))
    keeps = where.type == "cpu" and is_auto(dtype)
    placed = inputs.place(tensor, X, tensor.dtype if keeps else parameters.dtype(dtype, where), where)
    assert isinstance(placed, Tensor)
    return placed


def for_scikit_learn(samples: Any, X: Any, *, copy: bool) -> Any:
    """Return the samples that were read from X as an array, which may be sparse."""
    array = samples.numpy(force=True) if isinstance(samples, Tensor) else samples
    # A fit centres a given matrix in place.
    return array.copy() if copy or isinstance(X, Tensor) else array


def own_copy(samples: Tensor, X: Any) -> Tensor:
    """Return the samples that were read from X, copied if they may be in the caller's memory."""
    if isinstance(X, Tensor) or samples.is_cuda:
        return samples
    is_own = isinstance(X, np.ndarray) and not np.may_share_memory(samples.numpy(), X)
    return samples if is_own else samples.clone()


def are_few(X: Any) -> bool:
    """Whether samples are so few that threads take longer to wake up than to copy and multiply them."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return len(shape) > 0 and shape[0] ** 2 < SMALL


def as_array(values: Any) -> np.ndarray:
    """Return values as an array, copied from the GPU if they are there."""
    return values.numpy(force=True) if isinstance(values, Tensor) else np.asarray(values)


def as_tensor(samples: Any) -> Tensor:
    """Return samples as a floating-point tensor, without a copy where possible."""
    if isinstance(samples, Tensor):
        return samples if samples.is_floating_point() else samples.double()
    return torch.from_numpy(np.require(samples, requirements=["C", "W"]))
