"""The cosine kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.kernels.base import Explicit, register


@register
@dataclass(frozen=True)
class Cosine(Explicit):
    """k(x, y) = x·y / (‖x‖ ‖y‖); a zero vector has kernel value 0 with everything.

    It is discontinuous at zero, where training moves the codes of some samples: above the first layer it seldom
    converges.
    """

    name = "cosine"
    rough = "jumps where the codes of a sample vanish: use RBF or Matern"

    def features(self, x: Tensor) -> Tensor:
        """Return x/‖x‖."""
        # Scaled to entries of order one, so that squares and powers of tiny rows, and their derivatives, neither vanish
        # nor overflow. The value does not depend on this scale, so it is detached.
        size = x.detach().abs().amax(dim=1, keepdim=True)
        zero = size < torch.finfo(x.dtype).tiny
        scaled = torch.where(zero, torch.zeros_like(x), x / torch.where(zero, 1.0, size))
        return scaled * torch.where(zero, 1.0, scaled.square().sum(dim=1, keepdim=True)).rsqrt()
