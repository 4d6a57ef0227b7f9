"""Limits of accuracy: the tolerance that rounding allows, and the error of codes that a tolerance implies."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.problem import stiefel

#: a tolerance below this many rounding errors cannot be reached: the gradient is no more accurate
ROUNDING = 50
#: a stationarity of this many rounding errors is as good as zero
EXACT = 4
#: eigenvalues of -Λ below this fraction of the largest leave a direction of the codes undetermined
UNDETERMINED = 1e-7
#: the same for one layer that is not centred, in rounding errors and in units of the residual of the fit
ROUNDINGS_OF_ONE, RESIDUALS_OF_ONE = 5000, 10


def undetermined_share(stationarity: float, dtype: torch.dtype) -> float:
    """Return the fraction of the largest eigenvalue up to which a component of one uncentred layer is undetermined.

    Far from zero, the first component of a linear kernel is the mean, and all others are small beside it. Their
    eigenvalues are as exact as the fit. Those of a deep model also depend on the curvature of other layers, and those
    of a centred one on what rounding leaves of kernel values.
    """
    return min(UNDETERMINED, max(ROUNDINGS_OF_ONE * torch.finfo(dtype).eps, RESIDUALS_OF_ONE * stationarity))


def code_error(H: Tensor, R: Tensor, multipliers: Tensor) -> float:
    """Return, to first order, the distance of the codes from stationary ones relative to their size, where G = HΛ + R.

    A gradient that is small compared with the whole may be the full gradient of a layer with a small energy. Directions
    that the multipliers do not determine are left out.
    """
    values, vectors = torch.linalg.eigh(-multipliers)
    size = values.abs()
    # Parts that are small compared with the whole gradient are lost in its rounding.
    lost = max(UNDETERMINED, ROUNDING * torch.finfo(H.dtype).eps)
    inverse = torch.where(size > lost * size.max(), 1.0 / size, torch.zeros_like(size))
    error = R.double() @ (vectors * inverse)
    return stiefel.norm(error) / stiefel.norm(H.double())
