"""Kernel values and explicit features of new points, with numpy.

The formulas are those of `drkm.kernels`, whose docstrings explain them; a test compares each with the kernel of the
same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drkm.arrays import forms
from drkm.validation import parts
from drkm.validation.parts import Part

#: rounding errors within which two points coincide: of their squared lengths, if the kernel has a kink, and of an
#: exponent
COINCIDENT, SMALLEST = 4, 8
#: of a polynomial kernel
LARGEST_DEGREE = 100

#: what multiplies the weights: kernel values or features of the rows of x
Values = Callable[[np.ndarray], np.ndarray]
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Formula:
    """What numpy computes for a kernel.

    Attributes
    ----------
    prepared : callable
        Returns the function of new points for given points (m×d) and parameters.
    parameters : mapping
        Requirements for the parameters.
    columns : int
        Number of weights per given point; 0 for a function of x alone, which has one weight per feature.
    """

    prepared: Callable[[np.ndarray, Parameters], Values]
    parameters: Mapping[str, Part] = field(default_factory=dict)
    columns: int = 1


def _rbf(points: np.ndarray, parameters: Parameters) -> Values:
    exponents = _exponents(points, parameters["sigma2"])
    return lambda x: np.exp(exponents(x))


def _laplacian(points: np.ndarray, parameters: Parameters) -> Values:
    # The square root of a rounding error is large: the squared lengths are reduced so far that a point coincides with
    # itself.
    exponents = _exponents(points, parameters["sigma2"], COINCIDENT + 0.5 * math.sqrt(points.shape[1]))
    return lambda x: np.exp(-_distances(exponents(x), 2.0))


def _matern(points: np.ndarray, parameters: Parameters) -> Values:
    exponents, nu = _exponents(points, parameters["sigma2"]), parameters["nu"]

    def values(x: np.ndarray) -> np.ndarray:
        a = _distances(exponents(x), 4 * nu)
        return (1.0 + a + (a * a / 3.0 if nu == 2.5 else 0.0)) * np.exp(-a)

    return values


def _polynomial(points: np.ndarray, parameters: Parameters) -> Values:
    gamma, offset, degree = (parameters[name] for name in ("gamma", "offset", "degree"))
    return lambda x: (gamma * (x @ points.T) + offset) ** degree


def _linear(points: np.ndarray, parameters: Parameters) -> Values:
    return lambda x: x


def _cosine(points: np.ndarray, parameters: Parameters) -> Values:
    return forms.normalised


def _fourier(points: np.ndarray, parameters: Parameters) -> Values:
    def features(x: np.ndarray) -> np.ndarray:
        phase = x @ points.T
        return np.concatenate([np.cos(phase), np.sin(phase)], axis=1) * len(points) ** -0.5

    return features


def _exponents(points: np.ndarray, sigma2: float, slack: float = 0.0) -> Values:
    """Return the function -‖x-y‖²/(2σ²) of x, with squared lengths reduced by so many rounding errors."""
    origin, scale = points.mean(axis=0), 1.0 / math.sqrt(sigma2)
    half = -0.5 * (1.0 - slack * float(np.finfo(points.dtype).eps))
    right = (points - origin) * scale
    added = half * np.einsum("ij,ij->i", right, right)

    def exponents(x: np.ndarray) -> np.ndarray:
        left = (x - origin) * scale
        values = left @ right.T
        values += added
        values += half * np.einsum("ij,ij->i", left, left)[:, None]
        return np.minimum(values, 0.0, out=values)

    return exponents


def _distances(exponents: np.ndarray, factor: float) -> np.ndarray:
    """Return a from e = -a²/factor, and 0 where rounding cannot distinguish the two points."""
    exponents[exponents >= -SMALLEST * np.finfo(exponents.dtype).eps] = 0.0
    return np.sqrt(-factor * exponents)


def _smoothness(name: str, value: Any) -> None:
    if value not in (1.5, 2.5):
        raise ValueError(f"{name}: got {value!r}, allowed are 1.5 and 2.5")


_WIDTH = {"sigma2": parts.positive}
_POWER = {"degree": parts.count(1, LARGEST_DEGREE), "gamma": parts.positive, "offset": parts.number(0.0)}
#: formulas by the name of the kernel's class; the given points of Fourier features are the frequencies Ωᵀ/σ
FORMULAS = {
    "RBF": Formula(_rbf, _WIDTH),
    "Laplacian": Formula(_laplacian, _WIDTH),
    "Matern": Formula(_matern, {"nu": _smoothness, **_WIDTH}),
    "Polynomial": Formula(_polynomial, _POWER),
    "Linear": Formula(_linear, columns=0),
    "Cosine": Formula(_cosine, columns=0),
    "FourierFeatures": Formula(_fourier, columns=2),
}
