"""Whether the precision of samples can hold their kernel values, and the choice of float64 where it cannot."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.kernels import Kernel, bandwidth
from drkm.machine.threads import one_thread
from drkm.wording import dtype_name


def check_size(kernel: Kernel, X: Tensor) -> float:
    """Return the largest ‖x‖², or kernel value, or raise an error if their precision cannot hold n times that."""
    longest = X[torch.linalg.vector_norm(X, dim=1).argmax()][None]
    largest = longest.square().sum() if kernel.is_isotropic else kernel.diagonal(longest).sum()
    largest = largest.detach()
    if not math.isfinite(len(X) * largest):
        kind = dtype_name(X.dtype)
        raise ValueError(f"X: values of the kernel are beyond {kind}: divide the data by their typical size")
    return largest.item()


def in_enough_digits(kernel: Kernel, X: Tensor, largest: float, gamma: float, *, may_change: bool) -> Tensor:
    """Return samples in float64 if float32 is too inexact for their distances, or for what is centred.

    An error if float64 is too inexact for distances. `largest` is that of ‖x‖², which bounds their rounding error at no
    cost; without `may_change` X keeps its precision, as it does for feature maps, which were checked in it.
    """
    if not kernel.is_isotropic:
        may_change = may_change and X.dtype == torch.float32 and not hasattr(kernel, "map")
        hidden = may_change and _is_lost_in_centring(kernel, X)
        return X.double() if hidden else X
    sigma2 = kernel.bandwidth
    if torch.finfo(X.dtype).eps * largest <= bandwidth.WORST_ROUNDING * sigma2:
        return X
    if may_change and bandwidth.is_hidden_by_rounding(sigma2, X):
        X = X.double()
    bandwidth.check_rounding(sigma2, X, layer=1, told=f"gamma: {gamma:.3g}, so that sigma2 is {sigma2:.3g},")
    return X


def _is_lost_in_centring(kernel: Kernel, X: Tensor) -> bool:
    """Whether rounding hides what centring leaves of kernel values, as those of a polynomial far from zero.

    What is less than the rounding of the samples themselves is not hidden: there is nothing to find.
    """
    rows = collectives.spread_rows(X, bandwidth.DIGITS_ROWS).double()
    K = kernel(rows, rows)
    left = K.diagonal().mean() - K.mean()
    size, eps = K.abs().mean(), torch.finfo(X.dtype).eps
    return bool(eps**2 * size < left < eps * size / bandwidth.WORST_ROUNDING)


def check_finite(codes: Tensor) -> None:
    """Raise an error if kernel values of points are more than their precision can hold."""
    with one_thread():
        finite = codes.isfinite()
        if not finite.all():
            bad = int((~finite.all(dim=1)).sum())
            raise ValueError(f"X: the kernel returns NaN or inf for {bad} of these points")
