"""Base classes of kernels: the families that the rest of the library relies on.

A kernel defines k(x, y) and nothing about how its Gram matrix is formed or stored, which is up to `drkm.gram`. Three
families cover all kernels here; a new kernel is a subclass of one of them, with the decorator `register`:

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
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.kernels.bandwidth import check_bandwidth, check_rounding, resolve_bandwidth
from drkm.machine.devices import size_on
from drkm.machine.elementwise import at_most_zero_
from drkm.machine.layout import slices
from drkm.validation.registry import Registry

#: memory for the results of a jet
Room = Sequence[Tensor] | None

#: entries of one block of kernel values; a few such blocks of float64 fit into a common second-level cache
BLOCK_ENTRIES = {"cpu": 1 << 16, "cuda": 1 << 26}
#: rounding errors of a squared length, besides those of its sum, within which points coincide if the kernel has a kink
COINCIDENT = 4
#: numbers of features that are computed at once: for many points, the intermediate results of a feature map would
#: need most of the memory
FEATURE_ENTRIES = {"cpu": 1 << 17, "cuda": 1 << 26}


class Profile(NamedTuple):
    """What the Triton kernels of `drkm.gram.fused` need to know about an isotropic kernel.

    `name` is a branch of `_jet` in `drkm.gram._triton`; with points multiplied by `stretch`/σ its exponentials are
    powers of 2.
    """

    name: str
    stretch: float


class Kernel(ABC):
    """A positive semi-definite function of two points."""

    #: its name in `kernel="…"` and on the command line; a kernel without a name can only be given as an object
    name: str = ""
    #: whether torch computes it; scikit-learn's kernels are computed by scikit-learn
    is_of_torch: bool = True
    #: the family: f of an exponent, f of the exponent of distances, explicit features, or a given Gram matrix
    is_pairwise: bool = False
    is_isotropic: bool = False
    is_explicit: bool = False
    is_given: bool = False
    #: parameters that may be rules, which `resolve` replaces by numbers
    rules: tuple[str, ...] = ()
    #: whether training changes parameters of the kernel other than its bandwidth
    trainable: bool = False
    #: whether pre-images need only its arrays, so that a file can leave out the samples
    preimages_without_samples: bool = False
    #: prefix of its arrays in a model file, before the number of the layer
    prefix: str = "kernel"
    #: whether k(Rx, Ry) = k(x, y) for every rotation R; decides whether the axes below it are free
    rotation_invariant: bool = True

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the m×n matrix of kernel values, one row per point of `x` (m×d), one column per point of `y` (n×d)."""

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
        if not is_dataclass(self):
            return dict(vars(self))
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def arrays(self) -> dict[str, Tensor]:
        """Arrays that a file holds besides the parameters, by name."""
        return {}

    @property
    def entry(self) -> dict[str, Any]:
        """Entry in the header of a model file."""
        return {"type": type(self).__name__, "parameters": self.parameters}

    def served(self, points: Tensor | None) -> tuple[str, dict[str, Any], Tensor | None]:
        """Return the name, the parameters and the points with which `drkm.serving` computes it, if it does."""
        return type(self).__name__, self.parameters, points

    def describe(self) -> str:
        """Return a one-line description."""
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
        """σ² as a number; an error for kernels without a bandwidth."""
        raise TypeError(f"kernel: {type(self).__name__} has no bandwidth")

    @property
    def count(self) -> int | None:
        """Number of features if the kernel approximates another one, else None."""
        return None

    @property
    def rough(self) -> str:
        """Where it is not differentiable, as the end of a sentence; training of a deep layer may get stuck there."""
        return ""

    @property
    def is_kinked(self) -> bool:
        """Whether it is a kernel of distances that is not differentiable where two points coincide."""
        return False

    @property
    def is_smooth(self) -> bool:
        """Whether it is a kernel of distances that is twice differentiable where two points coincide."""
        return False

    @property
    def needs_all_samples(self) -> bool:
        """Whether it needs all samples at once."""
        return self.is_given or self.trainable

    @property
    def profile(self) -> Profile | None:
        """Description for the fused sweeps on GPUs; None if they do not support it, and it is swept in torch."""
        return None

    @property
    def original(self) -> Kernel:
        """The kernel itself, or the one that it approximates."""
        return self

    @property
    def with_preimages(self) -> Kernel:
        """The kernel with which pre-images are found."""
        return self

    @property
    def in_same_basis(self) -> Kernel:
        """The kernel with all arrays that its features depend on, including those that a file can leave out."""
        return self

    def error(self, points: Tensor | Rows) -> float | None:
        """Return an estimate of the relative error at these points; None for a kernel that approximates none."""
        return None

    def describe_error(self, error: float) -> str:
        """Return a readable description of an error."""
        return f"{error:.2%}"

    def module_parameters(self) -> list[torch.nn.Parameter]:
        """Return the parameters that training changes, for a trainable kernel."""
        return []

    def width(self, inputs: int) -> int:
        """Return the number of features of a point with this many inputs."""
        return inputs if self.count is None else self.count

    def widest(self, inputs: int) -> int:
        """Return the size of the largest intermediate result for one point on the way to its features."""
        return max(inputs, self.width(inputs))

    def features(self, x: Tensor) -> Tensor:
        """Return φ of every row, of a kernel that has explicit features."""
        raise TypeError(f"kernel: {type(self).__name__} has no explicit features")


Kind = TypeVar("Kind", bound=type[Kernel])

#: kernels by name, and all classes that files can hold, by class name
NAMES: Registry[type[Kernel]] = Registry("kernel", "kernels")
KINDS: Registry[type[Kernel]] = Registry("kernel", "kernels")


def register(kind: Kind) -> Kind:
    """Register a kernel class: under its `name` for `kernel="…"` and the command line, under its class name for files.

    Decorate it above `@dataclass(frozen=True)`: the fields are the parameters that a file holds, each with a default.
    """
    KINDS.check_class(kind, Kernel)
    if "__dataclass_fields__" not in vars(kind):
        raise TypeError(f"kernel: {kind.__name__} must be a dataclass, whose fields are its parameters")
    KINDS.add(kind.__name__, kind, kind)
    if kind.name:
        NAMES.add(kind.name, kind, kind)
    return kind


class Pairwise(Kernel):
    """A kernel f(e) of an exponent e that is one matrix product of augmented points.

    The gradient of e with respect to its first point is `pull_scale` · (y - `is_isotropic` · x).
    """

    is_pairwise = True
    #: number of blocks of memory that `jet` fills besides that of the exponents
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

        Exponents of an isotropic kernel are negative up to rounding. Entries of the result may be the same tensor.

        `room` (`rooms` tensors of the shape of the exponents) is memory for the results, so that a loop can reuse it:
        fresh pages cost several times the arithmetic. Gradients cannot be traced if it is given.
        """

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of kernel values."""
        return self.values(self.exponents(x, y))

    def exponents(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of exponents e."""
        # Only differences matter to isotropic kernels, and small numbers lose fewer digits in ‖x‖² + ‖y‖² - 2x·y.
        origin = y.mean(dim=0) if self.is_isotropic else None
        # One after the other: with many features, copies of the points need most of the memory.
        left = self.factors(x if origin is None else x - origin)[0]
        right = self.factors(y if origin is None else y - origin)[1]
        return left @ right.T

    def values(self, exponent: Tensor) -> Tensor:
        """Return f(e); the exponents may be overwritten."""
        block = size_on(exponent.device, BLOCK_ENTRIES)
        if exponent.requires_grad or exponent.numel() <= block:
            return self.jet(exponent, 0)[0]
        parts = exponent.split(max(1, block * len(exponent) // exponent.numel()))
        room = [torch.empty_like(parts[0]) for _ in range(self.rooms)]
        for part in parts:
            part.copy_(self.jet(part, 0, [place[: len(part)] for place in room])[0])
        return exponent


def places(exponent: Tensor, room: Room) -> tuple[Tensor | None, ...]:
    """Return where a jet writes, for `out=`: over the exponents and into `room`, or into fresh memory without it."""
    return (None,) * 3 if room is None else (exponent, *room)


class Isotropic(Pairwise):
    """k(x, y) = f(e), e = -‖x-y‖²/(2σ²); f(0) = 1.

    A kernel of your own extends it as a frozen dataclass with the field `sigma2` and the method `jet(exponent, order,
    room=None)`, which returns a tuple of tensors: f and its derivatives up to `order`, at most 2, at the exponents e.
    The memory of the exponents, and that of `room`, may be used for the result. Put `register` above the dataclass.
    """

    is_isotropic = True
    has_bandwidth = True
    rules = ("sigma2",)
    sigma2: float | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", check_bandwidth(self.sigma2))

    def resolve(self, points: Tensor, *, layer: int) -> Isotropic:
        """Return the kernel with σ² as a number (see `drkm.kernels.bandwidth`)."""
        sigma2 = resolve_bandwidth(self.sigma2, points, layer=layer)
        check_rounding(sigma2, points, layer=layer)
        return self.with_parameters(sigma2=sigma2)

    @property
    def spectral_degrees(self) -> float | None:
        """Degrees of freedom of the multivariate t distribution that is the spectral density; inf is a Gaussian.

        None, the default, is for another density: the kernel then has no Fourier features, and counts as smooth.
        """
        return None

    @property
    def is_kinked(self) -> bool:
        """Whether it has a kink: its spectral density has no mean."""
        return self.spectral_degrees is not None and self.spectral_degrees <= 1

    @property
    def is_smooth(self) -> bool:
        """Whether it is smooth: its spectral density has a variance."""
        return self.spectral_degrees is None or self.spectral_degrees > 2

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
        half = self.half_of_squares(points) * (scaled * scaled).sum(dim=1, keepdim=True)
        one = torch.ones_like(half)
        return torch.cat([scaled, half, one], dim=1), torch.cat([scaled, one, half], dim=1)

    def half_of_squares(self, points: Tensor) -> float:
        """Return the factor of ‖x‖²/σ² in the exponents, -1/2.

        A kink takes the square root of the rounding error of e = 0. For kernels that have one, the factor is smaller in
        size by the rounding of d terms, so that the exponent of a point with itself is above 0, which counts as 0.
        """
        if not self.is_kinked:
            return -0.5
        return -0.5 * (1.0 - (COINCIDENT + 0.5 * math.sqrt(points.shape[1])) * torch.finfo(points.dtype).eps)

    def values(self, exponent: Tensor) -> Tensor:
        """Return f(e); the exponents may be overwritten."""
        # Rounding can make the exponent of a point with itself positive, and for a distant point very large.
        return super().values(exponent if exponent.requires_grad else at_most_zero_(exponent))

    def diagonal(self, x: Tensor) -> Tensor:
        """Return ones: f(0) = 1."""
        return x.new_ones(len(x))


class DotProduct(Pairwise):
    """k(x, y) = f(e), e = γ x·y + c.

    A kernel of your own extends it as a frozen dataclass with the fields `gamma` and `offset` (c) and the method `jet`,
    as for `Isotropic`.
    """

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
    """k(x, y) = φ(x)·φ(y) for a feature map φ that can be computed and differentiated.

    A kernel of your own extends it as a frozen dataclass with the method `features(x)`, which returns φ of every row of
    a tensor. For a function or a network without parameters to choose, `FeatureMap` is enough.
    """

    is_explicit = True

    def served(self, points: Tensor | None) -> tuple[str, dict[str, Any], Tensor | None]:
        """Return the name and the parameters with which `drkm.serving` computes the features, if it does."""
        return type(self).__name__, self.parameters, None

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Return φ of every row."""

    def blocks(self, points: Tensor | Rows) -> list[slice]:
        """Return slices of points whose features need little memory."""
        entries = size_on(points.device, FEATURE_ENTRIES)
        step = max(1, entries // max(1, self.widest(points.shape[1])))
        return slices(len(points), step)

    def table(self, points: Tensor | Rows) -> Tensor:
        """Return φ of many points without gradients, computed a few points at a time."""
        out: Tensor | None = None
        with torch.no_grad():
            for rows in self.blocks(points):
                phi = self.features(points[rows])
                out = phi.new_empty(len(points), phi.shape[1]) if out is None else out
                out[rows] = phi
        return self.features(points[:0]) if out is None else out

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
