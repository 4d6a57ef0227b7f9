"""Random Fourier features of kernels of distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.kernels.approximation import Approximation
from drkm.kernels.base import Isotropic, register
from drkm.machine.layout import copied

#: rows whose kernel values are compared for an estimate of the error
ERROR_ROWS = 1000


@register
@dataclass(frozen=True, eq=False)
class FourierFeatures(Approximation):
    """φ(x) = [cos(Ωᵀx/σ), sin(Ωᵀx/σ)]/√F, whose products are k(x, y) in the mean over the frequencies Ω.

    The frequencies are drawn from the spectral density of the kernel (Bochner's theorem; Rahimi and Recht). The
    width enters only as 1/σ, so that it can change while the frequencies stay.

    Parameters
    ----------
    kernel : Isotropic
        The kernel that is approximated, with a number for its width.
    frequencies : Tensor of shape (d, F)
        Ω, for σ = 1.
    """

    serves = Isotropic
    kernel: Isotropic
    frequencies: Tensor = field(repr=False)

    @property
    def count(self) -> int:
        """2F, a cosine and a sine for each frequency."""
        return 2 * self.frequencies.shape[1]

    @property
    def arrays(self) -> dict[str, Tensor]:
        """The frequencies."""
        return {"frequencies": self.frequencies}

    @property
    def scaled(self) -> Tensor:
        """Ω/σ."""
        return self.frequencies / math.sqrt(self.bandwidth)

    @property
    def weight(self) -> float:
        """1/√F."""
        return self.frequencies.shape[1] ** -0.5

    def with_parameters(self, **parameters: float | str) -> Self:
        """Return a copy with another width and the same frequencies."""
        return replace(self, kernel=self.kernel.with_parameters(**parameters))

    def features(self, x: Tensor) -> Tensor:
        """Return cosines and sines, side by side."""
        phase = x @ self.scaled
        return self.weight * torch.cat([phase.cos(), phase.sin()], dim=1)

    def pullback(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the map V ↦ ∂⟨φ(x), V⟩/∂x, in closed form."""
        frequencies = self.scaled
        phase = x @ frequencies
        cosine, sine = phase.cos(), phase.sin()

        def pull(V: Tensor) -> Tensor:
            on_cosine, on_sine = V.chunk(2, dim=1)
            return self.weight * ((cosine * on_sine - sine * on_cosine) @ frequencies.T)

        return pull

    def width_features(self, x: Tensor) -> Tensor:
        """Return ∂φ/∂log σ²: a phase changes by half of itself, downwards."""
        phase = x @ self.scaled
        return 0.5 * self.weight * torch.cat([phase * phase.sin(), -phase * phase.cos()], dim=1)

    def diagonal(self, x: Tensor) -> Tensor:
        """Return ones: cos² + sin² = 1."""
        return x.new_ones(len(x))

    def error(self, points: Tensor | Rows) -> float:
        """Return the root mean square error of kernel values, relative to theirs, on at most 1,000 rows."""
        rows = collectives.spread_rows(points, ERROR_ROWS)
        exact = self.kernel(rows, rows).double()
        return float((self(rows, rows).double() - exact).norm() / exact.norm())

    def describe(self) -> str:
        """One short line for people."""
        return f"{self.kernel.describe()} by {self.count} Fourier features"

    def describe_error(self, error: float) -> str:
        """Say what the error is relative to."""
        return f"Fourier features, kernel values off by {error:.2%} (root mean square)"


def draw_frequencies(
    kernel: Isotropic, inputs: int, count: int, *, orthogonal: bool, random_state: int, like: Tensor
) -> Tensor:
    """Return frequencies (inputs×count) drawn from the spectral density of a kernel with σ = 1.

    The density is a multivariate t distribution: Gaussian for the RBF, Cauchy for the Laplacian, 2ν degrees of freedom
    for Matérn kernels. Orthogonal frequencies (Yu et al.) have the same distribution one by one, and directions that
    are orthonormal in blocks of `inputs`, which lowers the variance of the kernel values.
    """
    rng = np.random.default_rng(random_state)
    normal = rng.standard_normal((count, inputs))
    if orthogonal:
        length = np.linalg.norm(normal, axis=1)
        directions = [_haar(inputs, min(inputs, count - begin), rng) for begin in range(0, count, inputs)]
        normal = np.concatenate(directions) * length[:, None]
    degrees = kernel.spectral_degrees
    if math.isfinite(degrees):
        normal *= np.sqrt(degrees / rng.chisquare(degrees, count))[:, None]
    return copied(normal.T).to(like)


def _haar(inputs: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` orthonormal rows with no preferred direction."""
    Q, R = np.linalg.qr(rng.standard_normal((inputs, count)))
    return (Q * np.where(np.diagonal(R) < 0, -1.0, 1.0)).T
