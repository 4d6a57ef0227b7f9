"""The polynomial kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from drkm.kernels.bandwidth import mean_square
from drkm.kernels.base import DotProduct, Room, places, register
from drkm.serving.formulas import LARGEST_DEGREE
from drkm.validation import checks


@register
@dataclass(frozen=True)
class Polynomial(DotProduct):
    """k(x, y) = (γ x·y + c)^p.

    Parameters
    ----------
    degree : int
        p, from 1 to 100: a power costs p products per kernel value, and larger powers no longer tell points apart.
    gamma : float or "scale"
        γ > 0; "scale" is 1 over the mean of ‖x‖², so that γ x·y is of order one (n/s above the first layer).
    offset : float
        c ≥ 0.
    """

    name = "polynomial"
    rules = ("gamma",)
    degree: int = 3
    gamma: float | str = "scale"
    offset: float = 1.0

    def __post_init__(self) -> None:
        is_integer = isinstance(self.degree, Integral) and not isinstance(self.degree, bool)
        if not is_integer or not 1 <= self.degree <= LARGEST_DEGREE:
            allowed = f"an integer of at least 1 and at most {LARGEST_DEGREE}"
            raise ValueError(f"degree: expected {allowed}, got {self.degree!r}")
        if self.gamma != "scale" and (isinstance(self.gamma, str) or not _is_finite(self.gamma) or self.gamma <= 0):
            raise ValueError(f'gamma: expected a positive number or "scale", got {self.gamma!r}')
        if not (_is_finite(self.offset) and self.offset >= 0):
            raise ValueError(f"offset: expected a number of at least 0, got {self.offset!r}")

    def resolve(self, points: Tensor, *, layer: int) -> Polynomial:
        """Return the kernel with γ as a number."""
        if self.gamma != "scale":
            return self
        mean = mean_square(points)
        return self.with_parameters(gamma=1.0 / mean if mean > 0 else 1.0)

    def jet(self, exponent: Tensor, order: int, room: Room = None) -> tuple[Tensor, ...]:
        """Return e^p and its derivatives."""
        x, y, z = places(exponent, room)
        # By products, from the lowest power to the highest: torch's own powers above 3 take twenty times as long.
        lowest = max(self.degree - order, 0)
        power = torch.pow(exponent, min(lowest, 3), out=y)
        for _ in range(3, lowest):
            power = torch.mul(power, exponent, out=y)
        powers = [power]
        for k, place in zip(reversed(range(order)), (z, x), strict=False):
            powers.append(torch.mul(powers[-1], exponent if k < self.degree else 1.0, out=place))
        value, *others = reversed(powers)
        scaled = (
            torch.mul(power, math.perm(self.degree, k), out=None if room is None else power)
            for k, power in enumerate(others, start=1)
        )
        return value, *scaled


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and checks.is_finite(value)
