"""What a solver carries from one iteration to the next: one dataclass per solver, checked when a file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import NoneType
from typing import Annotated, Any, Self, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Evaluation
from drkm.solvers.result import HISTORY, Status
from drkm.validation import parts
from drkm.validation.parts import Part


@dataclass(frozen=True)
class Dimensions:
    """The sizes of a fit, by which the parts of a state are checked."""

    #: samples at hand
    rows: int
    sizes: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    #: of each layer, whether its kernel has a bandwidth
    widths: tuple[bool, ...]
    #: number of the last stage of a start
    stages: int = 0

    @property
    def total(self) -> int:
        """S, the components of all layers."""
        return sum(self.sizes)

    @property
    def codes(self) -> Part:
        """What H, and whatever is of its shape, must be."""
        return parts.tensor(self.rows, self.total, dtype=self.dtype)

    @property
    def square(self) -> Part:
        """What multipliers of HᵀH must be."""
        return parts.tensor(self.total, self.total, dtype=torch.float64)

    @property
    def curvature(self) -> Part:
        """What the weights of the samples' own codes must be, one vector or None per layer but the last."""
        row = parts.nullable(parts.tensor(self.rows, dtype=self.dtype))
        return parts.each([row] * (len(self.sizes) - 1))


#: What a field of a state may be. A file must have that there, in the dimensions of the fit.
Codes = Annotated[Tensor, lambda of: of.codes]
Square = Annotated[Tensor, lambda of: of.square]
Block = Annotated[Tensor, lambda of: parts.tensor(of.rows * of.total, dtype=of.dtype)]
Logs = Annotated[Tensor, lambda of: parts.tensor(sum(of.widths), dtype=torch.float64)]
Count = Annotated[int, lambda of: parts.count()]
Positive = Annotated[float, lambda of: parts.positive]
NotNegative = Annotated[float, lambda of: parts.number(0)]
History = Annotated[list[dict[str, float]], lambda of: HISTORY]
Curvature = Annotated[Sequence[Tensor | None], lambda of: of.curvature]
#: what is stored can go on
Unfinished = Annotated[Status | None, lambda of: parts.nothing]


@dataclass(frozen=True, kw_only=True)
class State:
    """What the states of all solvers have: a point, and where its run is.

    Checkpoints are written and read by the fields and their types: numbers, tensors, lists of them, or a dataclass of
    such fields. A type from above says more closely what a file must have there.
    """

    H: Codes
    objective: float
    stationarity: NotNegative
    #: ‖HᵀH - I‖_F, which solvers that stay on the manifold need not compute
    feasibility: NotNegative = 0.0
    #: what a step says that ends the run, else None
    status: Unfinished = None
    iteration: Count = 0
    seconds: NotNegative = 0.0
    evaluations: Count = 0
    history: History = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PointState(State):
    """A point of the manifold with its gradient G, the Riemannian gradient R = G - HΛ and the multipliers Λ."""

    G: Codes
    R: Codes
    multipliers: Square
    #: as in `Evaluation`
    curvature: Curvature

    @classmethod
    def at(cls, H: Tensor, evaluation: Evaluation, **own: Any) -> Self:
        """Return the state at a point, with the fields of its solver's own."""
        return cls(**_geometry(H, evaluation), **own)

    def moved(self, H: Tensor, evaluation: Evaluation, **own: Any) -> Self:
        """Return the state of the same run at another point."""
        return replace(self, **_geometry(H, evaluation), **own)


def _geometry(H: Tensor, evaluation: Evaluation) -> dict[str, Any]:
    """Return what a state knows of a point of the manifold."""
    G = evaluation.gradient
    multipliers = stiefel.multipliers(H, G)
    R = G - H @ multipliers.to(H.dtype)
    size, size_R = stiefel.norms(G, R)
    return {
        "H": H,
        "G": G,
        "R": R,
        "multipliers": multipliers,
        "curvature": evaluation.curvature,
        "objective": evaluation.value,
        "stationarity": stiefel.relative(size_R, size),
    }


def parts_of(kind: type, of: Dimensions) -> dict[str, Part]:
    """Return what each field of a state, or of a record in it, must be in a file."""
    return {name: _part(hint, of) for name, hint in _hints(kind).items()}


def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {own.name: hints[own.name] for own in fields(kind)}


def _part(hint: Any, of: Dimensions) -> Part:
    """Return what a value of this type must be in a file."""
    if get_origin(hint) is Annotated:
        return hint.__metadata__[0](of)
    if get_origin(hint) is list:
        return parts.several(_part(get_args(hint)[0], of))
    if (inner := _of_optional(hint)) is not None:
        return parts.nullable(_part(inner, of))
    if isinstance(hint, type) and is_dataclass(hint):
        return parts.group(parts_of(hint, of))
    return parts.number() if hint is float else parts.present


def _of_optional(hint: Any) -> Any:
    """Return the type that a value has unless it is None, where it may be None."""
    inner = get_args(hint)
    return next((one for one in inner if one is not NoneType), None) if NoneType in inner else None


Kind = TypeVar("Kind")


def restored(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Return the state, or the record in one, whose fields have these values."""
    made = dict(values)
    for name, hint in _hints(kind).items():
        record = _of_optional(hint) or hint
        if isinstance(record, type) and is_dataclass(record) and made[name] is not None:
            made[name] = restored(record, made[name])
    return kind(**made)
