"""Samples of a fit of `KernelPCA`, and codes: as arrays, sparse matrices and tensors, in the precision of the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm import inputs
from drkm.distributed import collectives
from drkm.kernel_pca.parameters import is_auto
from drkm.training import parameters
from drkm.validation import checks
from drkm.wording import dtype_name


@dataclass(frozen=True)
class Given:
    """Samples as a tensor, before they are rounded to the precision of a fit.

    Attributes
    ----------
    tensor : Tensor of shape (n, d)
        Floating-point numbers, or integers of a tensor.
    X : array-like
        What they were read from.
    """

    tensor: Tensor
    X: Any

    def placed(self, device: Any, dtype: Any) -> Tensor:
        """Return them on the device and in the precision of a fit."""
        where = parameters.device(device, self.X.device if isinstance(self.X, Tensor) else None, len(self.tensor))
        return self._place(self._precision(dtype, where), where)

    def doubled(self, placed: Tensor) -> Tensor:
        """Return them in float64, where they were placed in float32."""
        return self._place(torch.float64, placed.device)

    def spread_rows(self, most: int, like: Tensor) -> Tensor:
        """Return some rows in float64."""
        return collectives.spread_rows(self.tensor, most).double().to(like.device)

    def _precision(self, dtype: Any, where: torch.device) -> torch.dtype:
        if not is_auto(dtype):
            return parameters.dtype(dtype, where)
        own = self.tensor.dtype if self.tensor.is_floating_point() else torch.float64
        return torch.float32 if prefers_float32(where) and inputs.keeps_digits(self.tensor, torch.float32) else own

    def _place(self, dtype: torch.dtype, where: torch.device) -> Tensor:
        placed = inputs.place(self.tensor, self.X, dtype, where)
        assert isinstance(placed, Tensor)
        return placed


def prefers_float32(where: torch.device) -> bool:
    """Whether a device is so much faster in float32 that dtype="auto" takes it where it is exact enough."""
    return where.type == "cuda"


def for_scikit_learn(samples: Any, X: Any, dtype: torch.dtype | None, *, copy: bool) -> Any:
    """Return the samples that were read from X as an array, which may be sparse, in the precision that is asked for."""
    array = samples.numpy(force=True) if isinstance(samples, Tensor) else samples
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if dtype is not None and array.dtype != dtype_name(dtype):
        if checks.is_sparse(array):
            return array.astype(dtype_name(dtype))
        return Given(as_tensor(array), None).placed("cpu", dtype_name(dtype)).numpy()
    # A fit centres a given matrix in place.
    return array.copy() if copy or isinstance(X, Tensor) else array


def asked_precision(device: Any, dtype: Any) -> torch.dtype | None:
    """Return the precision in which scikit-learn computes a kernel, on a CPU; None if it is that of the samples."""
    cpu = torch.device("cpu")
    parameters.device(device, cpu, 0)
    return None if is_auto(dtype) else parameters.dtype(dtype, cpu)


def own_copy(samples: Tensor, X: Any) -> Tensor:
    """Return the samples that were read from X, copied if they may be in the caller's memory."""
    if isinstance(X, Tensor) or samples.is_cuda:
        return samples
    is_own = isinstance(X, np.ndarray) and not np.may_share_memory(samples.numpy(), X)
    return samples if is_own else samples.clone()


def as_tensor(samples: Any) -> Tensor:
    """Return samples as a tensor, without a copy where possible; integers of a tensor keep their small type."""
    if isinstance(samples, Tensor):
        return samples
    rows = np.require(samples, requirements=["C", "W"])
    # Any stride is contiguous along one row or column, also the negative one of X[::-1], which torch refuses.
    return torch.from_numpy(rows if min(rows.strides) >= 0 else rows.copy())
