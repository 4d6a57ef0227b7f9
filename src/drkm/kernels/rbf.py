"""The Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from drkm.kernels.base import Isotropic, Profile, Room, register
from drkm.machine.elementwise import at_most_zero_, exp_


@register
@dataclass(frozen=True)
class RBF(Isotropic):
    """k(x, y) = exp(-‖x-y‖² / (2σ²)).

    Parameters
    ----------
    sigma2 : float or {"auto", "median", "scale"}
        σ² or a rule for it: "median" is half the median squared distance (layer 1), "scale" is the mean squared
        distance (2·s/n above layer 1), and "auto" is "median" in layer 1 and "scale" above.
    """

    name = "rbf"
    rooms = 0
    sigma2: float | str = "auto"

    @property
    def spectral_degrees(self) -> float:
        """inf: a Gaussian."""
        return math.inf

    @property
    def profile(self) -> Profile:
        """exp(e) = 2^(-‖u-v‖²) for points u stretched by √(log₂(e)/2)/σ."""
        return Profile("rbf", math.sqrt(0.5 * math.log2(math.e)))

    def jet(self, exponent: Tensor, order: int, room: Room = None) -> tuple[Tensor, ...]:
        """Return exp(e), which is its own derivative."""
        return (exponent.exp_(),) * (order + 1)

    def values(self, exponent: Tensor) -> Tensor:
        """Return exp(e); the exponents may be overwritten."""
        if exponent.requires_grad:
            return super().values(exponent)
        return exp_(at_most_zero_(exponent))
