"""Matérn kernels of half-integer smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.kernels.bandwidth import check_bandwidth
from drkm.kernels.base import Isotropic
from drkm.kernels.laplacian import distance, inverse_distance


@dataclass(frozen=True)
class Matern(Isotropic):
    """Matérn kernel, a = √(2ν)·‖x-y‖/σ: (1 + a)·exp(-a) for ν = 3/2, (1 + a + a²/3)·exp(-a) for ν = 5/2.

    Parameters
    ----------
    nu : {1.5, 2.5}
        Smoothness ν.
    sigma2 : float or {"auto", "median", "scale"}
        σ², by the same rules as in `RBF`.
    """

    nu: float = 2.5
    sigma2: float | str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", check_bandwidth(self.sigma2))
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu: got {self.nu!r}, allowed are 1.5 and 2.5")

    @property
    def spectral_degrees(self) -> float:
        """2ν."""
        return 2 * self.nu

    def jet(self, exponent: Tensor, order: int) -> tuple[Tensor, ...]:
        """Return f and its derivatives in e = -a²/(4ν)."""
        a = math.sqrt(2 * self.nu) * distance(exponent)
        decay = torch.exp(-a)
        if self.nu == 1.5:
            value, slope = (1 + a) * decay, 3 * decay
            curvature = 9 * decay * inverse_distance(a) if order > 1 else a
        else:
            value, slope = (1 + a + a.square() / 3) * decay, (5 / 3) * (1 + a) * decay
            curvature = (25 / 3) * decay
        return (value, slope, curvature)[: order + 1]
