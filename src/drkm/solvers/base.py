"""The interface of a solver: a first state, a step from state to state, and checks of stored states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from torch import Tensor

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.result import Result, Status
from drkm.solvers.state import Dimensions, PointState, State, parts_of, restored
from drkm.validation import parts
from drkm.validation.registry import Registry

#: by how much redundant numbers of a stored state may disagree
BELONGS = 1e-3

Own = TypeVar("Own", bound=State)


class Solver(ABC, Generic[Own]):
    """An algorithm as a function from state to state.

    `start` and `step` must be deterministic functions of the energy and the state, so that a run that was killed and
    resumed ends at the same point as one that was not.
    """

    name: str
    #: the dataclass of its states, which determines how checkpoints are written and read
    state_class: type[Own]
    #: whether iterates stay on the manifold, so that the start must lie there
    on_manifold: bool = True
    #: whether the algorithm terminates by itself, so that no iteration limit applies
    has_schedule: bool = False
    #: status of a run that finishes before the tolerance is reached
    short_of_tolerance: Status = Status.STALLED

    def __init_subclass__(cls) -> None:
        """Refuse a solver without a `state_class`: its checkpoints could not be read."""
        super().__init_subclass__()
        kind = getattr(cls, "state_class", None)
        if "step" in vars(cls) and not (isinstance(kind, type) and issubclass(kind, State)):
            raise TypeError(
                f"state_class: {cls.__name__} needs a dataclass that extends drkm.solvers.State, got {kind!r}"
            )

    @property
    def blocks(self) -> int:
        """Number of n×S blocks that it holds at once, for the memory estimate of a fit."""
        return 40

    def of_model(self, lam: Sequence[float], learn_bandwidth: bool) -> Solver:
        """Return the solver for a model with these λ_l; only solvers whose objective contains them need this."""
        return self

    def prepare(self, energy: Energy, H: Tensor, is_late: Callable[[], bool]) -> Tensor:
        """Return a better starting point than H; must stop early when `is_late` returns True."""
        return H

    @abstractmethod
    def start(self, energy: Energy, H: Tensor) -> Own:
        """Return the first state."""

    @abstractmethod
    def step(self, energy: Energy, state: Own, tol: float) -> Own:
        """Return the next state; a state with a `status` ends the run."""

    def belong_together(self, state: Own) -> bool:
        """Whether the parts of a stored state, each valid by itself, are consistent with each other."""
        return True

    def resume(self, energy: Energy, state: Own) -> None:
        """Restore the energy to a stored state; needed only by solvers that change the energy."""


Kind = TypeVar("Kind", bound=type[Solver])

#: solvers by name
NAMES: Registry[type[Solver]] = Registry("solver", "solvers")


def register(kind: Kind) -> Kind:
    """Register a solver class under its `name`, for `solver="…"`, the command line and files; fields need defaults."""
    return NAMES.add_class(kind, Solver)


def read_state(solver: Solver[Own], dimensions: Dimensions, values: Mapping[str, Any]) -> Own:
    """Rebuild the state in a file, or raise an error if the solver cannot resume from it."""
    parts.check(values, parts_of(solver.state_class, dimensions))
    state = restored(solver.state_class, values)
    recorded = _is_last(state.history, state.iteration, state.objective, state.stationarity)
    # Shared rows are on the manifold only together, and a process that refuses would leave the others waiting.
    if not recorded or not (collectives.current() or _is_point(state)) or not solver.belong_together(state):
        raise ValueError("the parts of a state do not belong together")
    return state


def read_result(H: Tensor, facts: dict[str, Any]) -> Result:
    """Rebuild the result of a start in a file, or raise an error if its parts contradict each other."""
    result = Result.from_facts(H, facts)
    recorded = _is_last(result.history, result.n_iter, result.objective, result.stationarity)
    # Shared rows are judged only together.
    if not recorded or not (collectives.current() or _is_as_feasible(result)):
        raise ValueError("the parts of a result do not belong together")
    return result


def _is_last(history: Sequence[Mapping[str, float]], iteration: int, objective: float, stationarity: float) -> bool:
    """Whether the last entry of a history is of this iteration, with these numbers."""
    last = history[-1] if history else {}
    expected = {"iteration": iteration, "objective": objective, "stationarity": stationarity}
    return all(last.get(name) == value for name, value in expected.items())


def _is_as_feasible(result: Result) -> bool:
    """Whether codes are as far from the manifold as their result says."""
    found = stiefel.feasibility(result.H)
    return abs(found - result.feasibility) <= BELONGS * max(1.0, result.feasibility)


def _is_point(state: State) -> bool:
    """Whether codes that must be on the manifold are, and their gradients are as long as the stationarity says."""
    if not isinstance(state, PointState):
        return True
    off = abs(stiefel.relative(state.R, state.G) - state.stationarity)
    return stiefel.feasibility(state.H) <= BELONGS and off <= BELONGS * state.stationarity
