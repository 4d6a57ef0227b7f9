"""The states of solvers between iterations: one dataclass per solver, checked when a file is read."""

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
    """The sizes of a fit, against which the parts of a state are checked."""

    #: number of samples of this process
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
        """Requirements for H and everything of its shape."""
        return parts.tensor(self.rows, self.total, dtype=self.dtype)

    @property
    def square(self) -> Part:
        """Requirements for multipliers of HᵀH."""
        return parts.tensor(self.total, self.total, dtype=torch.float64)

    @property
    def curvature(self) -> Part:
        """Requirements for the weights of samples' own codes: one vector or None per layer but the last."""
        row = parts.nullable(parts.tensor(self.rows, dtype=self.dtype))
        return parts.each([row] * (len(self.sizes) - 1))


#: Types of the fields of a state. A file must have such values, in the dimensions of the fit.
Codes = Annotated[Tensor, lambda of: of.codes]
Square = Annotated[Tensor, lambda of: of.square]
Block = Annotated[Tensor, lambda of: parts.tensor(of.rows * of.total, dtype=of.dtype)]
Logs = Annotated[Tensor, lambda of: parts.tensor(sum(of.widths), dtype=torch.float64)]
Count = Annotated[int, lambda of: parts.count()]
Positive = Annotated[float, lambda of: parts.positive]
NotNegative = Annotated[float, lambda of: parts.number(0)]
History = Annotated[list[dict[str, float]], lambda of: HISTORY]
Curvature = Annotated[Sequence[Tensor | None], lambda of: of.curvature]
#: a stored state can be resumed
Unfinished = Annotated[Status | None, lambda of: parts.nothing]


@dataclass(frozen=True, kw_only=True)
class State:
    """The fields common to the states of all solvers: a point, and the progress of its run.

    Checkpoints are written and read according to the fields and their types: numbers, tensors, lists of them, or a
    dataclass of such fields. The types above restrict what a file may have there.
    """

    H: Codes
    objective: float
    stationarity: NotNegative
    #: ‖HᵀH - I‖_F, which solvers on the manifold need not compute
    feasibility: NotNegative = 0.0
    #: set by a step that ends the run, else None
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
        """Return the state at a point, with the solver's own fields."""
        return cls(**_geometry(H, evaluation), **own)

    def moved(self, H: Tensor, evaluation: Evaluation, **own: Any) -> Self:
        """Return the state of the same run at another point."""
        return replace(self, **_geometry(H, evaluation), **own)


def _geometry(H: Tensor, evaluation: Evaluation) -> dict[str, Any]:
    """Return the fields of a state at a point of the manifold."""
    G = evaluation.gradient
    multipliers = stiefel.multipliers(H, G)
    R = G - H @ multipliers.to(H.dtype)
    return {
        "H": H,
        "G": G,
        "R": R,
        "multipliers": multipliers,
        "curvature": evaluation.curvature,
        "objective": evaluation.value,
        "stationarity": stiefel.relative(R, G),
    }


def parts_of(kind: type, of: Dimensions) -> dict[str, Part]:
    """Return the requirements for each field of a state, or of a record in it, in a file."""
    return {name: _part(hint, of) for name, hint in _hints(kind).items()}


def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {own.name: hints[own.name] for own in fields(kind)}


def _part(hint: Any, of: Dimensions) -> Part:
    """Return the requirements for a value of this type in a file."""
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
    """Return T for the type T | None, and other types unchanged."""
    inner = get_args(hint)
    return next((one for one in inner if one is not NoneType), None) if NoneType in inner else None


Kind = TypeVar("Kind")


def restored(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Build a state, or a record in one, from the values of its fields."""
    made = dict(values)
    for name, hint in _hints(kind).items():
        record = _of_optional(hint) or hint
        if isinstance(record, type) and is_dataclass(record) and made[name] is not None:
            made[name] = restored(record, made[name])
    return kind(**made)
