"""How exact codes can be: what rounding leaves of a tolerance, and what a tolerance leaves of the codes."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.problem import stiefel

#: a tolerance below this many rounding errors cannot be met: it is what the gradient itself is worth
ROUNDING = 50
#: a stationarity of this many rounding errors is as good as zero
EXACT = 4
#: eigenvalues of -Λ below this fraction of the largest leave a direction of the codes undetermined
UNDETERMINED = 1e-7


def code_error(H: Tensor, R: Tensor, multipliers: Tensor) -> float:
    """Return to first order how far the codes are from stationary ones, relative to their size, where G = HΛ + R.

    A gradient that is small beside the whole may be all there is of a layer of small energy. Directions that the
    multipliers do not determine are left out.
    """
    values, vectors = torch.linalg.eigh(-multipliers)
    size = values.abs()
    # What is small beside the whole gradient is lost in the rounding of it.
    lost = max(UNDETERMINED, ROUNDING * torch.finfo(H.dtype).eps)
    inverse = torch.where(size > lost * size.max(), 1.0 / size, torch.zeros_like(size))
    error = R.double() @ (vectors * inverse)
    return stiefel.norm(error) / stiefel.norm(H.double())
