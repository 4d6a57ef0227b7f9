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
