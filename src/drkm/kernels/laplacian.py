"""The exponential kernel of the Euclidean distance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.kernels.bandwidth import check_bandwidth
from drkm.kernels.base import Isotropic


@dataclass(frozen=True)
class Laplacian(Isotropic):
    """k(x, y) = exp(-‖x-y‖/σ), with the L2 norm, so that rotations of the inputs change nothing.

    It has a kink where two points coincide; such a pair adds nothing to gradients.

    Parameters
    ----------
    sigma2 : float or {"auto", "median", "scale"}
        σ², by the same rules as in `RBF`.
    """

    sigma2: float | str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", check_bandwidth(self.sigma2))

    @property
    def spectral_degrees(self) -> float:
        """1: a Cauchy distribution."""
        return 1.0

    def jet(self, exponent: Tensor, order: int) -> tuple[Tensor, ...]:
        """Return exp(-a) and its derivatives in e = -a²/2."""
        a = distance(exponent)
        value = torch.exp(-a)
        inverse = inverse_distance(a) if order else a
        jet = (value, value * inverse, value * inverse.square() * (1 + inverse))
        return jet[: order + 1]


def distance(exponent: Tensor) -> Tensor:
    """Return a = ‖x-y‖/σ from e = -a²/2, and 0 where rounding cannot tell the two points apart."""
    a = (-2.0 * exponent).clamp_(min=0).sqrt_()
    return torch.where(a > 4 * torch.finfo(a.dtype).eps ** 0.5, a, torch.zeros_like(a))


def inverse_distance(a: Tensor) -> Tensor:
    """Return 1/a, and 0 for coincident points."""
    return torch.where(a > 0, 1.0 / a, torch.zeros_like(a))
