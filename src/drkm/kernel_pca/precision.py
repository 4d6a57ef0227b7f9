"""Whether the precision of samples can hold their kernel values, and the choice of float64 where it cannot."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.arrays.eigenpairs import roundings_of_sum
from drkm.kernel_pca.samples import Given
from drkm.kernels import Kernel, bandwidth
from drkm.machine.threads import one_thread
from drkm.wording import dtype_name

#: samples whose kernel values are centred, and the number of times by which the first eigenvalue must exceed rounding
CENTRED_ROWS, ROUNDINGS = 64, 10
#: largest mean error of k(x, x) for which float32 is taken on a CPU; scikit-learn computes such distances in float64.
#: On a GPU, where float64 takes many times as long, float32 is taken up to the largest error that is accepted at all.
WORST_DISTANCES = 1e-4
#: largest rounding error of codes from explicit features, which are centred themselves
WORST_CODES = 3e-4


def check_size(kernel: Kernel, X: Tensor) -> float:
    """Return the largest ‖x‖², or kernel value, or raise an error if their precision cannot hold n times that."""
    lengths = torch.linalg.vector_norm(X, dim=1)
    if kernel.is_isotropic:
        longest = lengths.max().item()
        # Unlike its power, the product of two numbers of Python becomes infinite without an error.
        largest = longest * longest
    else:
        largest = kernel.diagonal(X[lengths.argmax()][None]).sum().item()
    if not len(X) * largest <= torch.finfo(X.dtype).max:
        kind = dtype_name(X.dtype)
        raise ValueError(f"X: values of the kernel are beyond {kind}: divide the data by their typical size")
    return largest


def for_width(kernel: Kernel, X: Tensor, given: Given) -> tuple[Kernel, Tensor]:
    """Return a kernel object with a number for its bandwidth, and float32 samples in float64 if rounding hides it."""
    if X.dtype != torch.float32 or not kernel.is_isotropic:
        return kernel, X
    sigma2 = bandwidth.resolve_bandwidth(kernel.parameters["sigma2"], X, layer=1)
    is_hidden = bandwidth.rounding_of_samples(sigma2, X) > _worst(X)
    return kernel.with_parameters(sigma2=sigma2), given.doubled(X) if is_hidden else X


def for_centring(kernel: Kernel, X: Tensor, given: Given) -> Tensor:
    """Return float32 samples in float64 if rounding hides what centring leaves of their kernel values.

    So it does with a polynomial kernel far from zero, or with a wide kernel of distances. Feature maps keep the
    precision that they were checked in.
    """
    if X.dtype != torch.float32 or hasattr(kernel, "map"):
        return X
    rows = given.spread_rows(CENTRED_ROWS, X)
    exact = kernel if kernel.original is kernel else kernel.resolve(rows, layer=1)
    K = exact(rows, rows)
    size, means, eps = K.abs().mean(), K.mean(dim=0), torch.finfo(X.dtype).eps
    K = K - means - means[:, None] + means.mean()
    total = K.trace()
    # What is less than the rounding of the samples themselves is not hidden: there is nothing to find.
    if total <= (2 * eps) ** 2 * size * len(K):
        return X
    # A lower bound of the first eigenvalue, and what it is compared with, per sample.
    first = K.square().sum() / (total * len(K))
    rounding = (eps / WORST_CODES) ** 2 if kernel.is_explicit else ROUNDINGS * roundings_of_sum(len(X)) * eps
    return given.doubled(X) if first < rounding * size else X


def for_distances(kernel: Kernel, X: Tensor, given: Given, largest: float, gamma: float, *, may_change: bool) -> Tensor:
    """Return samples in float64 if float32 is too inexact for their distances; an error if float64 is too.

    `largest` is that of ‖x‖², which bounds the rounding error at no cost; without `may_change` X keeps its precision.
    """
    sigma2, may_change = kernel.bandwidth, may_change and X.dtype == torch.float32
    worst = _worst(X) if may_change else bandwidth.WORST_ROUNDING
    if torch.finfo(X.dtype).eps * largest <= worst * sigma2:
        return X
    if may_change and bandwidth.rounding_of_samples(sigma2, X) > worst:
        X = given.doubled(X)
    bandwidth.check_rounding(sigma2, X, layer=1, told=f"gamma: {gamma:.3g}, so that sigma2 is {sigma2:.3g},")
    return X


def _worst(X: Tensor) -> float:
    return bandwidth.WORST_ROUNDING if X.is_cuda else WORST_DISTANCES


def check_finite(codes: Tensor) -> None:
    """Raise an error if kernel values of points are more than their precision can hold."""
    with one_thread():
        finite = codes.isfinite()
        if not finite.all():
            bad = int((~finite.all(dim=1)).sum())
            raise ValueError(f"X: the kernel returns NaN or inf for {bad} of these points")
