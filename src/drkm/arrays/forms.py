"""Kernels with numpy: as functions of exponents, of which tiles are formed, or as explicit features.

The formulas are those of `drkm.kernels`, whose docstrings explain them; a test compares each with the kernel of the
same name. A kernel of torch has a form too, by `OfTorch`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from drkm.machine.elementwise import at_most_zero_, exp_, torch_pays

#: largest mean error of k(x, x) by rounding of distances that is accepted
WORST_ROUNDING = 1e-2


@dataclass(frozen=True)
class Gaussian:
    """exp(e), e = -‖x-y‖²/(2σ²).

    Parameters
    ----------
    sigma2 : float
        σ².
    by_torch : bool
        Whether torch computes the exponentials, which is worth its import if there are many and numpy's are slow.
    """

    is_isotropic: ClassVar[bool] = True

    sigma2: float
    by_torch: bool = False

    @property
    def pull_scale(self) -> float:
        """1/σ²."""
        return 1.0 / self.sigma2

    def half_of_squares(self, points: np.ndarray) -> float:
        """Return the factor of ‖x‖²/σ² in the exponents."""
        return -0.5

    def factors(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the augmented points whose products are the exponents."""
        scaled = points * math.sqrt(self.pull_scale)
        half = -0.5 * np.einsum("ij,ij->i", scaled, scaled)[:, None]
        one = np.ones_like(half)
        return np.hstack([scaled, half, one]), np.hstack([scaled, one, half])

    def values(self, exponents: np.ndarray) -> np.ndarray:
        """Replace exponents by kernel values."""
        # Rounding can make the exponent of a point with itself positive, and for a distant point very large.
        return exp_(at_most_zero_(exponents), by_torch=self.by_torch)


@dataclass(frozen=True)
class Power:
    """e^p, e = γ x·y + c.

    Parameters
    ----------
    degree : int
        p.
    gamma, offset : float
        γ and c.
    """

    is_isotropic: ClassVar[bool] = False

    degree: int
    gamma: float
    offset: float

    @property
    def pull_scale(self) -> float:
        """γ."""
        return self.gamma

    def factors(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the augmented points whose products are the exponents."""
        one = np.ones_like(points[:, :1])
        return np.hstack([points * self.gamma, self.offset * one]), np.hstack([points, one])

    def values(self, exponents: np.ndarray) -> np.ndarray:
        """Replace exponents by kernel values, by products: numpy's own powers take twenty times as long."""
        if self.degree > 1:
            base = exponents.copy()
            for _ in range(1, self.degree):
                exponents *= base
        return exponents

    def diagonal(self, points: np.ndarray) -> np.ndarray:
        """Return k(x, x) of each row."""
        with np.errstate(over="ignore"):
            return self.values(self.gamma * np.einsum("ij,ij->i", points, points) + self.offset)


class OfTorch:
    """The form of a pairwise kernel of torch, whose values and factors torch computes in the memory of arrays."""

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.is_isotropic: bool = kernel.is_isotropic
        self.pull_scale: float = kernel.pull_scale

    def half_of_squares(self, points: np.ndarray) -> float:
        """Return the factor of ‖x‖²/σ² in the exponents."""
        return self.kernel.half_of_squares(_tensor(points))

    def factors(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the augmented points whose products are the exponents."""
        left, right = self.kernel.factors(_tensor(points))
        return left.numpy(), right.numpy()

    def values(self, exponents: np.ndarray) -> np.ndarray:
        """Replace exponents by kernel values."""
        tile = _tensor(exponents)
        into_values(self.kernel, tile)
        return exponents


def named(name: str, parameters: Mapping[str, Any], among: int = 0) -> Gaussian | Power | None:
    """Return the form of the kernel whose class has this name, or None if numpy does not compute its tiles.

    `among` is the number of all values of which tiles are formed.
    """
    if name == "RBF":
        return Gaussian(float(parameters["sigma2"]), torch_pays(among))
    if name == "Polynomial":
        return Power(int(parameters["degree"]), float(parameters["gamma"]), float(parameters["offset"]))
    return None


def normalised(x: np.ndarray) -> np.ndarray:
    """Return x/‖x‖ of each row, the features of the cosine kernel; rows of zeros remain."""
    # Scaled first: squares of tiny rows vanish, those of huge ones overflow.
    size = np.abs(x).max(axis=1, keepdims=True)
    zero = size < np.finfo(x.dtype).tiny
    scaled = np.where(zero, 0.0, x / np.where(zero, 1.0, size))
    return scaled / np.where(zero, 1.0, np.linalg.norm(scaled, axis=1, keepdims=True))


#: explicit features of samples by the name of the kernel's class, in memory of their own
FEATURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"Linear": np.copy, "Cosine": normalised}


def into_values(kernel: Any, exponents: Any) -> Any:
    """Return kernel values in the memory of their exponents."""
    values = kernel.values(exponents)
    return exponents if values is exponents else exponents.copy_(values)


def _tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array)
