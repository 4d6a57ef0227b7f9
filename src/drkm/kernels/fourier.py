"""Random Fourier features of kernels of distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.kernels.approximation import Approximation
from drkm.kernels.base import Isotropic, Kernel, register
from drkm.machine import memory
from drkm.machine.layout import copied

#: rows whose kernel values are compared for an estimate of the error
ERROR_ROWS = 1000
#: bytes that drawing needs per number, and the largest difference between lengths of frequencies that count as equal
DRAWING, SAME_LENGTH = 40, 1e-4
#: number of frequencies whose lengths identify a draw: the last ones, because a shorter draw has the same first ones
LENGTHS = 16
#: maximum number of frequencies, far more than a fit has use for, because a few bytes of a file can ask for any number
MOST = 10**7
#: numbers of small orthogonal blocks that are drawn together
TOGETHER = 1 << 18


@dataclass(frozen=True)
class Draw:
    """The parameters from which frequencies can be drawn again, so that files need not hold them.

    Parameters
    ----------
    inputs, count : int
        Shape of the frequencies.
    orthogonal : bool
        Whether directions are orthonormal in blocks of `inputs`.
    random_state : int
        The seed.
    degrees : float, optional
        Degrees of freedom of the t distribution that is the spectral density; None is the Gaussian.
    """

    inputs: int
    count: int
    orthogonal: bool
    random_state: int
    degrees: float | None

    def frequencies(self, like: Tensor) -> Tensor:
        """Return Ω (inputs×count), in the precision and on the device of `like`.

        Orthogonal frequencies (Yu et al.) each have the same distribution, and lower the variance of the kernel
        values.
        """
        rng = np.random.default_rng(self.random_state)
        normal = rng.standard_normal((self.count, self.inputs))
        if self.orthogonal:
            length = np.linalg.norm(normal, axis=1)
            _replace_by_orthonormal(normal, rng)
            normal *= length[:, None]
        if self.degrees is not None:
            normal *= np.sqrt(self.degrees / rng.chisquare(self.degrees, self.count))[:, None]
        return copied(normal.T).to(like)


@register
@dataclass(frozen=True, eq=False)
class FourierFeatures(Approximation):
    """φ(x) = [cos(Ωᵀx/σ), sin(Ωᵀx/σ)]/√F, whose inner products have the expectation k(x, y) over the frequencies Ω.

    The frequencies are drawn from the spectral density of the kernel (Bochner's theorem; Rahimi and Recht). The
    width enters only as 1/σ, so that it can change while the frequencies stay.

    Parameters
    ----------
    kernel : Isotropic
        The kernel that is approximated, with a number for its width.
    frequencies : Tensor of shape (d, F)
        Ω, for σ = 1.
    draw : Draw, optional
        The parameters that they were drawn with, which files and pickles hold instead of the frequencies.
    """

    serves = Isotropic
    kernel: Isotropic
    frequencies: Tensor = field(repr=False)
    draw: Draw | None = None

    @classmethod
    def drawn(
        cls, kernel: Isotropic, inputs: int, count: int, *, orthogonal: bool, random_state: int, like: Tensor
    ) -> Self:
        """Return features with frequencies from the spectral density of a kernel with σ = 1.

        The density is a multivariate t distribution: Gaussian for the RBF, Cauchy for the Laplacian, 2ν degrees of
        freedom for Matérn kernels.
        """
        degrees = kernel.spectral_degrees
        assert degrees is not None
        draw = Draw(inputs, count, orthogonal, random_state, degrees if math.isfinite(degrees) else None)
        return cls(kernel, draw.frequencies(like), draw)

    @classmethod
    def read(cls, kernel: Kernel, entry: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """Rebuild the features from a file; frequencies that it does not hold are drawn again."""
        if "draw" not in entry:
            return super().read(kernel, entry, arrays)
        lengths = arrays["lengths"]
        draw = Draw(**entry["draw"])
        memory.require(DRAWING * draw.inputs * draw.count, lengths.device, "path: drawing frequencies again")
        made = cls(kernel, draw.frequencies(lengths), draw)  # type: ignore[arg-type]
        if not torch.allclose(made.frequencies[:, -len(lengths) :].norm(dim=0), lengths, rtol=SAME_LENGTH):
            raise ValueError(f"kernels: numpy {np.__version__} does not draw the frequencies of the fit again")
        return made

    def __getstate__(self) -> dict[str, Any]:
        # Of frequencies that can be drawn again, only the precision and the device.
        drawn = {"dtype": self.frequencies.dtype, "device": self.frequencies.device}
        return {**vars(self), "frequencies": self.frequencies if self.draw is None else drawn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        draw, kept = state["draw"], state["frequencies"]
        vars(self).update({**state, "frequencies": kept if draw is None else draw.frequencies(torch.empty(0, **kept))})

    @property
    def _inputs(self) -> Tensor:
        return self.frequencies

    def _moved(self, like: Tensor) -> Self:
        # Files and pickles draw them again in the precision that they have.
        return super()._moved(like) if self.draw is None else replace(self, frequencies=self.draw.frequencies(like))

    @property
    def count(self) -> int:
        """2F, a cosine and a sine for each frequency."""
        return 2 * self.frequencies.shape[1]

    @property
    def arrays(self) -> dict[str, Tensor]:
        """The frequencies; if they can be drawn again, only the lengths of some, which identify the draw."""
        if self.draw is None:
            return {"frequencies": self.frequencies}
        return {"lengths": self.frequencies[:, -LENGTHS:].norm(dim=0)}

    @property
    def entry(self) -> dict[str, Any]:
        """Entry in the header of a model file, with the parameters of the draw."""
        if self.draw is None:
            return super().entry
        return {**super().entry, "draw": dict(vars(self.draw))}

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

    def served(self, points: Tensor | None) -> tuple[str, dict[str, Any], Tensor | None]:
        """Return the frequencies as points: the width is part of them."""
        return type(self).__name__, {}, self.scaled.T

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
        """Return ∂φ/∂log σ²; the derivative of a phase is minus half the phase."""
        phase = x @ self.scaled
        return 0.5 * self.weight * torch.cat([phase * phase.sin(), -phase * phase.cos()], dim=1)

    def diagonal(self, x: Tensor) -> Tensor:
        """Return ones: cos² + sin² = 1."""
        return x.new_ones(len(x))

    def error(self, points: Tensor | Rows) -> float:
        """Return the root mean square error of kernel values, relative to their size, on at most 1,000 rows."""
        rows = collectives.spread_rows(points, ERROR_ROWS)
        exact = self.kernel(rows, rows).double()
        return float((self(rows, rows).double() - exact).norm() / exact.norm())

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{self.kernel.describe()} by {self.count} Fourier features"

    def describe_error(self, error: float) -> str:
        """Return a readable description of an error."""
        return f"Fourier features, kernel values off by {error:.2%} (root mean square)"


def _replace_by_orthonormal(rows: np.ndarray, rng: np.random.Generator) -> None:
    """Overwrite rows by random ones that are orthonormal in blocks of as many as a row has numbers."""
    count, inputs = rows.shape
    step = max(1, TOGETHER // inputs**2) * inputs
    whole = count - count % inputs
    for begin in range(0, whole, step):
        blocks = rows[begin : min(begin + step, whole)].reshape(-1, inputs, inputs)
        blocks[:] = _haar(len(blocks), inputs, inputs, rng)
    if whole < count:
        rows[whole:] = _haar(1, inputs, count - whole, rng)[0]


def _haar(blocks: int, inputs: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return blocks of `count` orthonormal rows, uniformly distributed over directions."""
    Q, R = np.linalg.qr(rng.standard_normal((blocks, inputs, count)))
    return (Q * np.where(R.diagonal(axis1=1, axis2=2) < 0, -1.0, 1.0)[:, None]).swapaxes(1, 2)
