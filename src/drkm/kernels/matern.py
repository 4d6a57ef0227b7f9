"""Matérn kernels of half-integer smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.kernels.base import Isotropic, Profile, Room, places, register
from drkm.kernels.laplacian import distance, inverse_distance


@register
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

    name = "matern"
    nu: float = 2.5
    sigma2: float | str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu: got {self.nu!r}, allowed are 1.5 and 2.5")

    @property
    def spectral_degrees(self) -> float:
        """2ν."""
        return 2 * self.nu

    @property
    def profile(self) -> Profile:
        """exp(-a) = 2^(-‖u-v‖) for points u stretched by √(2ν) log₂(e)/σ."""
        return Profile("matern32" if self.nu == 1.5 else "matern52", math.sqrt(2 * self.nu) * math.log2(math.e))

    def jet(self, exponent: Tensor, order: int, room: Room = None) -> tuple[Tensor, ...]:
        """Return f and its derivatives in e = -a²/(4ν)."""
        x, y, z = places(exponent, room)
        a = distance(exponent, 4 * self.nu, out=x)
        decay = torch.exp(torch.neg(a, out=y), out=y)
        line = torch.addcmul(decay, decay, a, out=z)
        if self.nu == 1.5:
            jet = [line]
            if order > 0:
                jet.append(torch.mul(decay, 3.0, out=y))
            if order > 1:
                jet.append(torch.mul(torch.mul(inverse_distance(a, out=x), 3.0, out=x), jet[1], out=x))
        else:
            jet = [torch.addcmul(line, torch.square(a, out=x), decay, value=1 / 3, out=x)]
            if order > 0:
                jet.append(torch.mul(line, 5 / 3, out=z))
            if order > 1:
                jet.append(torch.mul(decay, 25 / 3, out=y))
        return tuple(jet)
