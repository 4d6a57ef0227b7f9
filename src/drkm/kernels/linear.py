"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from drkm.kernels.bandwidth import mean_square
from drkm.kernels.base import Explicit, register


@register
@dataclass(frozen=True)
class Linear(Explicit):
    """k(x, y) = x·y.

    Above the first layer H_lᵀH_{l-1} = 0 makes its energy exactly zero: use it in layer 1.
    """

    name = "linear"

    def resolve(self, points: Tensor, *, layer: int) -> Linear:
        """Check that kernel values are in the range of the precision, and return the kernel itself."""
        mean_square(points)
        return self

    def features(self, x: Tensor) -> Tensor:
        """Return x itself."""
        return x
