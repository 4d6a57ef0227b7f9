"""What a kernel is: the families that the rest of the library relies on.

A kernel says what k(x, y) is and nothing about how its Gram matrix is formed or stored (that is `drkm.gram`).
Three families cover all kernels here; a new kernel is a subclass of one of them:

* `Isotropic`: k(x, y) = f(e) with e = -‖x-y‖²/(2σ²) ≤ 0,
* `DotProduct`: k(x, y) = f(e) with e = γ x·y + c,
* `Explicit`: k(x, y) = φ(x)·φ(y) with a feature map φ that can be computed.

The first two are `Pairwise`: their exponent e is one matrix product of augmented points, so that a tile of the Gram
matrix, its gradient and its Hessian products need only f, f' and f'' of that tile.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.kernels.bandwidth import check_bandwidth, check_digits, resolve_bandwidth

#: memory for the results of a jet
Room = Sequence[Tensor] | None

#: entries of one block of kernel values; a few such blocks of float64 fit into a common second-level cache
BLOCK_ENTRIES = {"cpu": 1 << 16, "cuda": 1 << 26}


class Kernel(ABC):
    """A positive semi-definite function of two points."""

    #: whether k(Rx, Ry) = k(x, y) for every rotation R; decides whether the axes below it are free
    rotation_invariant: bool = True

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of kernel values, one row a point of `x` (m×d), one column a point of `y` (n×d)."""

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:
        """Return k(x_i, x_i) for every row."""

    def resolve(self, points: Tensor, *, layer: int) -> Kernel:
        """Return the kernel with every data-dependent parameter replaced by a number.

        `points` are the samples for layer 1 and any n×s matrix with orthonormal columns above it.
        """
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as plain numbers and strings."""
        return dict(vars(self))

    def describe(self) -> str:
        """One short line for people."""
        inside = ", ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.parameters.items()
        )
        return f"{type(self).__name__}({inside})"

    def with_parameters(self, **parameters: float | str) -> Self:
        """Return a copy with some parameters replaced."""
        return replace(self, **parameters)  # type: ignore[type-var]

    @property
    def has_bandwidth(self) -> bool:
        """Whether the kernel has a width σ² that can be learned, widened, and compared with the spread of points."""
        return False

    @property
    def bandwidth(self) -> float:
        """σ² as a number, of a kernel that has one."""
        raise TypeError(f"kernel: {type(self).__name__} has no bandwidth")

    @property
    def rough(self) -> str:
        """Where it is not differentiable, as the rest of a sentence; a deep layer may stop there."""
        return ""


class Pairwise(Kernel):
    """A kernel f(e) of an exponent e that is one matrix product of augmented points.

    The gradient of e with respect to its first point is `pull_scale` · (y - `is_isotropic` · x).
    """

    is_isotropic: bool
    #: blocks of memory that `jet` fills besides that of the exponents
    rooms: int = 2

    @property
    @abstractmethod
    def pull_scale(self) -> float:
        """1/σ² of an isotropic kernel, γ of a dot-product kernel."""

    @abstractmethod
    def factors(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return L and R (both n×(s+2) or less) such that e of points i and j is L_i·R_j."""

    @abstractmethod
    def jet(self, exponent: Tensor, order: int, room: Room = None) -> tuple[Tensor, ...]:
        """Return f, f', …, up to `order` at the exponents, whose memory may be overwritten.

        Those of an isotropic kernel are negative, but for rounding.
        Entries of the result may be one and the same tensor.

        `room` (`rooms` tensors of the shape of the exponents) is memory for the results, so that a loop can use the
        same again and again: fresh pages cost several times the arithmetic. With it no gradients can be traced.
        """

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of kernel values."""
        return self.values(self.exponents(x, y))

    def exponents(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of exponents e."""
        # Only differences matter to isotropic kernels, and small numbers lose fewer digits in ‖x‖² + ‖y‖² - 2x·y.
        origin = y.mean(dim=0) if self.is_isotropic else None
        # One after the other: with many features a copy of the points is what memory goes into.
        left = self.factors(x if origin is None else x - origin)[0]
        right = self.factors(y if origin is None else y - origin)[1]
        return left @ right.T

    def values(self, exponent: Tensor) -> Tensor:
        """Return f(e); the exponents may be overwritten."""
        block = BLOCK_ENTRIES["cuda" if exponent.is_cuda else "cpu"]
        if exponent.requires_grad or exponent.numel() <= block:
            return self.jet(exponent, 0)[0]
        parts = exponent.split(max(1, block * len(exponent) // exponent.numel()))
        room = [torch.empty_like(parts[0]) for _ in range(self.rooms)]
        for part in parts:
            part.copy_(self.jet(part, 0, [place[: len(part)] for place in room])[0])
        return exponent


def places(exponent: Tensor, room: Room) -> tuple[Tensor | None, ...]:
    """Return where a jet writes, for `out=`: over the exponents and in `room`; without that, in fresh memory."""
    return (None,) * 3 if room is None else (exponent, *room)


class Isotropic(Pairwise):
    """k(x, y) = f(e), e = -‖x-y‖²/(2σ²); f(0) = 1."""

    is_isotropic = True
    has_bandwidth = True
    sigma2: float | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", check_bandwidth(self.sigma2))

    def resolve(self, points: Tensor, *, layer: int) -> Isotropic:
        """Return the kernel with σ² as a number (see `drkm.kernels.bandwidth`)."""
        sigma2 = resolve_bandwidth(self.sigma2, points, layer=layer)
        check_digits(sigma2, points, layer=layer)
        return self.with_parameters(sigma2=sigma2)

    @property
    @abstractmethod
    def spectral_degrees(self) -> float:
        """Degrees of freedom of the multivariate t distribution that is the spectral density; inf is a Gaussian."""

    @property
    def bandwidth(self) -> float:
        """σ² as a number."""
        return float(self.sigma2)

    @property
    def pull_scale(self) -> float:
        """1/σ²."""
        return 1.0 / self.bandwidth

    def factors(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the augmented points whose products are -‖x-y‖²/(2σ²)."""
        scaled = points * math.sqrt(self.pull_scale)
        half = -0.5 * (scaled * scaled).sum(dim=1, keepdim=True)
        one = torch.ones_like(half)
        return torch.cat([scaled, half, one], dim=1), torch.cat([scaled, one, half], dim=1)

    def values(self, exponent: Tensor) -> Tensor:
        """Return f(e); the exponents may be overwritten."""
        # Rounding makes the exponent of a point with itself positive, and for a point far out by much.
        return super().values(exponent if exponent.requires_grad else exponent.clamp_(max=0))

    def diagonal(self, x: Tensor) -> Tensor:
        """Return ones: f(0) = 1."""
        return x.new_ones(len(x))


class DotProduct(Pairwise):
    """k(x, y) = f(e), e = γ x·y + c."""

    is_isotropic = False
    gamma: float | str
    offset: float

    @property
    def pull_scale(self) -> float:
        """γ."""
        return float(self.gamma)

    def factors(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the augmented points whose products are γ x·y + c."""
        offset = torch.full_like(points[:, :1], self.offset)
        one = torch.ones_like(offset)
        return torch.cat([points * self.pull_scale, offset], dim=1), torch.cat([points, one], dim=1)

    def diagonal(self, x: Tensor) -> Tensor:
        """Return f(γ ‖x‖² + c)."""
        return self.values(self.pull_scale * (x * x).sum(dim=1) + self.offset)


class Explicit(Kernel):
    """k(x, y) = φ(x)·φ(y) for a feature map φ that can be computed and differentiated."""

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Return φ of every row."""

    def table(self, points: Tensor | Rows) -> Tensor:
        """Return φ of many points, to keep; without gradients. A file is read in tiles."""
        with torch.no_grad():
            if isinstance(points, Rows):
                return torch.cat([self.features(points[rows]) for rows in points.tiles()])
            return self.features(points)

    def pullback(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the map V ↦ ∂⟨φ(x), V⟩/∂x."""
        backward = torch.func.vjp(self.features, x)[1]
        return lambda v: backward(v)[0]

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of kernel values."""
        return self.features(x) @ self.features(y).T

    def diagonal(self, x: Tensor) -> Tensor:
        """Return ‖φ(x)‖²."""
        return self.features(x).square().sum(dim=1)

    def width_features(self, x: Tensor) -> Tensor:
        """Return ∂φ/∂log σ² of every row, for kernels with a bandwidth; up to a rotation of the features."""
        raise TypeError(f"kernel: {type(self).__name__} has no bandwidth")
