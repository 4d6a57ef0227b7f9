"""The exponential kernel of the Euclidean distance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.kernels.base import Isotropic, Profile, Room, places, register


@register
@dataclass(frozen=True)
class Laplacian(Isotropic):
    """k(x, y) = exp(-‖x-y‖/σ), with the L2 norm, which makes it invariant to rotations of the inputs.

    It has a kink where two points coincide; such a pair contributes nothing to gradients.

    Parameters
    ----------
    sigma2 : float or {"auto", "median", "scale"}
        σ², by the same rules as in `RBF`.
    """

    name = "laplacian"
    rough = "has a kink where the codes of two samples meet: use RBF or Matern"
    sigma2: float | str = "auto"

    @property
    def spectral_degrees(self) -> float:
        """1: a Cauchy distribution."""
        return 1.0

    @property
    def profile(self) -> Profile:
        """exp(-a) = 2^(-‖u-v‖) for points u stretched by log₂(e)/σ."""
        return Profile("laplacian", math.log2(math.e))

    def jet(self, exponent: Tensor, order: int, room: Room = None) -> tuple[Tensor, ...]:
        """Return exp(-a) and its derivatives in e = -a²/2."""
        x, y, z = places(exponent, room)
        a = distance(exponent, 2.0, out=x)
        value = torch.exp(torch.neg(a, out=y), out=y)
        if order == 0:
            return (value,)
        inverse = inverse_distance(a, out=x)
        slope = torch.mul(inverse, value, out=z)
        if order == 1:
            return value, slope
        return value, slope, torch.mul(torch.addcmul(inverse, inverse, inverse, out=x), slope, out=x)


def distance(exponent: Tensor, factor: float, out: Tensor | None) -> Tensor:
    """Return a from e = -a²/factor, and 0 where rounding cannot distinguish the two points."""
    square = torch.mul(exponent, -factor, out=out)
    square = torch.threshold(square, 8 * factor * torch.finfo(square.dtype).eps, 0.0, out=out)
    return torch.sqrt(square, out=out)


def inverse_distance(a: Tensor, out: Tensor | None) -> Tensor:
    """Return 1/a, and 0 for coincident points."""
    return torch.nan_to_num(torch.reciprocal(a, out=out), nan=math.nan, posinf=0.0, out=out)
