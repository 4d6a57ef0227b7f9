"""What all solvers share: a state that can be stored, one step, one result, and the loop around them."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.energy import Energy, Evaluation
from drkm.validation import parts
from drkm.validation.parts import Part
from drkm.validation.registry import Registry
from drkm.wording import counted

#: Everything a solver carries from one iteration to the next, so that it can be stored: tensors, lists of tensors,
#: numbers, strings and None.
#: Keys that every state has: H, objective, stationarity, status ("" while running).
State = dict[str, Any]


@dataclass(frozen=True)
class Dimensions:
    """By what the parts of a state are measured."""

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

    def pairs(self, most: int) -> Part:
        """What a list of steps or of changes of the gradient must be."""
        return parts.several(parts.tensor(self.rows * self.total, dtype=self.dtype), most)


class Status(StrEnum):
    """Why a solver stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_SECONDS = "max_seconds"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    #: in files of earlier versions alone: codes of small energy still moved when a limit was met
    UNSETTLED = "unsettled"
    SCHEDULE_ENDED = "schedule_ended"
    GIVEN_UP = "given_up"
    #: what a step says when its algorithm has nothing left to do; a result says whether that was enough
    DONE = "done"

    @property
    def cut_short(self) -> bool:
        """Whether the run could have gone on, and can another time."""
        return self in (Status.INTERRUPTED, Status.MAX_SECONDS)


#: what makes codes of small energy count
ALIKE = "divide X by its typical size, or choose eta so that the energies of the layers are alike"
ADVICE = {
    Status.MAX_ITER: "raise max_iter, loosen tol, or try another solver or start",
    Status.MAX_SECONDS: "raise max_seconds or loosen tol",
    Status.INTERRUPTED: "fit again, with checkpoint=... to go on from where it stopped",
    Status.STALLED: "no step lowers the energy beyond rounding: loosen tol or use a smoother kernel",
    Status.UNSETTLED: f"codes of small energy still move: {ALIKE}",
    Status.SCHEDULE_ENDED: "the published schedule of penalties ended before the tolerance: use solver='auto'",
}


@dataclass
class Result:
    """What every solver returns.

    Attributes
    ----------
    H : Tensor of shape (n, S)
        The best point.
    objective, feasibility, stationarity : float
        J, ‖HᵀH - I‖_F and the relative norm of the Riemannian gradient there.
    n_iter, n_evaluations : int
        Iterations; energies and gradients computed.
    seconds : float
        Time spent, over all parts of an interrupted run.
    status : Status
        Why it stopped.
    history : list of dict
        One entry an iteration: iteration, objective, stationarity, feasibility, seconds.
    """

    H: Tensor
    objective: float
    feasibility: float
    stationarity: float
    n_iter: int
    n_evaluations: int
    seconds: float
    status: Status
    history: list[dict[str, float]] = field(default_factory=list, repr=False)

    def facts(self) -> dict[str, Any]:
        """Return all but H, as JSON takes it."""
        return {**{name: value for name, value in vars(self).items() if name != "H"}, "status": self.status.value}

    @classmethod
    def from_facts(cls, H: Tensor, facts: dict[str, Any]) -> Result:
        """Return the result that `facts` took apart, if it is one."""
        parts.check(facts, FACTS)
        return cls(H=H, **{**facts, "status": Status(facts["status"])})

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status is Status.CONVERGED

    @property
    def outcome(self) -> str:
        """How it ended, in a few words."""
        numbers = f"stationarity {self.stationarity:.2g}, feasibility {self.feasibility:.2g}"
        steps = counted(self.n_iter, "iteration")
        if self.converged:
            return f"converged in {steps} ({numbers})"
        return f"did not converge ({self.status.value} after {steps}, {numbers})"

    @property
    def advice(self) -> str:
        """What to change if it did not converge."""
        if self.status is Status.STALLED and self.H.dtype != torch.float64:
            return ADVICE[self.status] + " or dtype='float64'"
        return ADVICE.get(self.status, "")

    @property
    def message(self) -> str:
        """One sentence of both."""
        return f"{self.outcome}: {self.advice}" if self.advice else self.outcome


_ENTRY = {
    "iteration": parts.count(),
    "objective": parts.number(),
    "stationarity": parts.number(0),
    "feasibility": parts.number(0),
    "seconds": parts.number(0),
}
_HISTORY = parts.several(parts.group(_ENTRY))
#: what a result has beside its codes
FACTS: dict[str, Part] = {
    "objective": parts.number(),
    "feasibility": parts.number(0),
    "stationarity": parts.number(0),
    "n_iter": parts.count(),
    "n_evaluations": parts.count(),
    "seconds": parts.number(0),
    "status": parts.choice(*Status),
    "history": _HISTORY,
}
#: what a state has beside that of its solver
RUN: dict[str, Part] = {
    "iteration": parts.count(),
    "seconds": parts.number(0),
    "evaluations": parts.count(),
    "history": _HISTORY,
}


class Solver(ABC):
    """An algorithm as a function from state to state.

    `start` and `step` must be deterministic functions of the energy and the state: this is what makes a run that was
    killed and resumed end at the same point as one that was not.
    """

    name: str
    #: whether iterates stay on the manifold, so that the start must lie there
    on_manifold: bool = True
    #: whether the algorithm ends by itself, so that no limit on iterations applies
    has_schedule: bool = False
    #: what a result says of a run that is done before the tolerance is reached
    short_of_tolerance: Status = Status.STALLED

    @property
    def blocks(self) -> int:
        """n×S blocks that it holds at once, for the account of what a fit takes."""
        return 40

    def of_model(self, lam: Sequence[float], learn_bandwidth: bool) -> Solver:
        """Return the solver for a model with these λ_l; only one whose objective has them needs to know."""
        return self

    def prepare(self, energy: Energy, H: Tensor, is_late: Callable[[], bool]) -> Tensor:
        """Return where to begin instead of H; to be cut short when `is_late` says so."""
        return H

    @abstractmethod
    def start(self, energy: Energy, H: Tensor) -> State:
        """Return the first state."""

    @abstractmethod
    def step(self, energy: Energy, state: State, tol: float) -> State:
        """Return the next state; one that sets `status` ends the run."""

    def parts(self, dimensions: Dimensions) -> dict[str, Part] | None:
        """Return what a stored state must have to be gone on with; None, for a solver that does not say, is anything.

        Without H, objective and stationarity, which every state has.
        """
        return None

    def belong_together(self, state: State) -> bool:
        """Whether the parts of a stored state, each of which is what it must be, can be those of one state."""
        return True

    def resume(self, energy: Energy, state: State) -> None:  # noqa: B027 - nothing to do for most solvers
        """Bring the energy to a stored state; only solvers that change the energy need to."""


Kind = TypeVar("Kind", bound=type[Solver])

#: solvers by the word for them
NAMES: Registry[type[Solver]] = Registry("solver", "solvers")


def register(kind: Kind) -> Kind:
    """Make a solver known by its `name`: to `solver="…"`, the command line and files; its parameters have defaults."""
    return NAMES.add_class(kind, Solver)


def point(H: Tensor, evaluation: Evaluation) -> State:
    """Return what a state knows of a point of the manifold."""
    G = evaluation.gradient
    multipliers = stiefel.multipliers(H, G)
    R = G - H @ multipliers.to(H.dtype)
    size, size_R = stiefel.norms(G, R)
    state: State = {
        "H": H,
        "G": G,
        "R": R,
        "multipliers": multipliers,
        "objective": evaluation.value,
        "stationarity": stiefel.relative(size_R, size),
    }
    for layer, weight in enumerate(evaluation.curvature):
        state[f"curvature{layer}"] = weight
    return state


def point_parts(dimensions: Dimensions) -> dict[str, Part]:
    """Return what the parts of a point must be."""
    row = parts.nullable(parts.tensor(dimensions.rows, dtype=dimensions.dtype))
    curvature = {f"curvature{layer}": row for layer in range(len(dimensions.sizes) - 1)}
    return {"G": dimensions.codes, "R": dimensions.codes, "multipliers": dimensions.square, **curvature}


def check_state(solver: Solver, dimensions: Dimensions, state: State) -> None:
    """Raise one sentence unless a solver can go on with a state that was stored."""
    own = solver.parts(dimensions)
    always = {"H": dimensions.codes, "objective": parts.number(), "stationarity": parts.number(0), **RUN}
    parts.check(state, always | (own or {}), others=own is None)
    last = state["history"][-1] if state["history"] else {}
    recorded = all(last.get(name) == state[name] for name in ("iteration", "objective", "stationarity"))
    # Rows that processes share are on the manifold together, and one that refuses would leave the others waiting.
    of_point = not solver.on_manifold or own is None or collectives.current() is not None or _is_point(state)
    if not (recorded and of_point and solver.belong_together(state)):
        raise ValueError("the parts of a state do not belong together")


def _is_point(state: State) -> bool:
    """Whether codes are on the manifold and their gradients are as long as the stationarity says."""
    size, size_R = stiefel.norms(state["G"], state["R"])
    off = abs(stiefel.relative(size_R, size) - state["stationarity"])
    return stiefel.feasibility(state["H"]) <= BELONGS and off <= BELONGS * state["stationarity"]


class Journal(Protocol):
    """Where a run keeps its state between interruptions."""

    def read(self) -> State | None:
        """Return the last state written, or None."""

    def write(self, state: State, *, now: bool = False) -> None:
        """Store a state if it is time to, or at once."""


#: by how much numbers that belong together may disagree
BELONGS = 1e-3
#: a tolerance below this many rounding errors cannot be met: it is what the gradient itself is worth
ROUNDING = 50
#: a stationarity of this many rounding errors is as good as zero
EXACT = 4
#: eigenvalues of -Λ below this fraction of the largest leave a direction of the codes undetermined
UNDETERMINED = 1e-7

Callback = Callable[[dict[str, float]], Any]
GiveUp = Callable[[Sequence[dict[str, float]]], bool]


def solve(
    solver: Solver,
    energy: Energy,
    H: Tensor,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    prepare: bool = True,
    callbacks: Sequence[Callback] = (),
    give_up: GiveUp | None = None,
    journal: Journal | None = None,
) -> Result:
    """Run a solver from H until it converges or a limit is met.

    `prepare` lets the solver look for a better place to begin than H. A callback gets one entry of the history an
    iteration and stops the run by returning True; `give_up` gets the history so far and ends a run that is not worth
    going on with. Ctrl-C ends the run with the best point so far.
    """
    clock = time.perf_counter()
    status: Status | None = None
    state = journal.read() if journal else None
    if state is not None:
        solver.resume(energy, state)
        energy.count.evaluations = int(state["evaluations"])
    else:
        # A start off the manifold is a start all the same: solvers that stay on it begin at the nearest point.
        begin = stiefel.polar(H) if solver.on_manifold else H
        try:
            if prepare:
                begin = solver.prepare(energy, begin, lambda: _is_late(clock, max_seconds))
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        state = {"iteration": 0, "seconds": 0.0, "history": [], **solver.start(energy, begin)}
    spent = state["seconds"]
    try:
        while status is None:
            state["seconds"] = collectives.agreed(spent + time.perf_counter() - clock)
            state["evaluations"] = energy.count.evaluations
            entry = _record(state)
            stop = _asked_to_stop(callbacks, entry)
            limit = math.inf if solver.has_schedule else max_iter
            status = _verdict(solver, state, tol, limit, max_seconds, stop)
            if status is None and give_up is not None and collectives.agreed(give_up(state["history"])):
                status = Status.GIVEN_UP
            if journal and (status is None or status.cut_short):
                journal.write(state, now=status is not None)
            if status is not None:
                break
            state = {**state, **solver.step(energy, state, tol), "iteration": state["iteration"] + 1}
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        # The step that was cut short may have changed the energy already.
        solver.resume(energy, state)
    return _result(energy, state, status, spent + time.perf_counter() - clock)


def _result(energy: Energy, state: State, status: Status, seconds: float) -> Result:
    return Result(
        H=state["H"],
        objective=state["objective"],
        feasibility=stiefel.feasibility(state["H"]),
        stationarity=state["stationarity"],
        n_iter=state["iteration"],
        n_evaluations=energy.count.evaluations,
        seconds=seconds,
        status=status,
        history=state["history"],
    )


def _asked_to_stop(callbacks: Sequence[Callback], entry: dict[str, float]) -> bool:
    # Every callback is told, even when one before it asks to stop.
    answers = [callback(entry) for callback in callbacks]
    return bool(collectives.agreed(any(answers) or collectives.interrupted()))


def _is_late(clock: float, max_seconds: float | None) -> bool:
    late = max_seconds is not None and time.perf_counter() - clock > 0.5 * max_seconds
    return bool(collectives.agreed(late or collectives.interrupted()))


def _record(state: State) -> dict[str, float]:
    entry = {
        "iteration": state["iteration"],
        "objective": state["objective"],
        "stationarity": state["stationarity"],
        "feasibility": state.get("feasibility", 0.0),
        "seconds": state["seconds"],
    }
    history = state["history"]
    if not history or history[-1]["iteration"] != state["iteration"]:
        history.append(entry)
    return entry


def _verdict(
    solver: Solver, state: State, tol: float, max_iter: float, max_seconds: float | None, stop: bool
) -> Status | None:
    if not math.isfinite(state["objective"]) or not math.isfinite(state["stationarity"]):
        raise FloatingPointError("the energy or its gradient became NaN or inf: check the data, the kernels and eta")
    tol = max(tol, ROUNDING * torch.finfo(state["H"].dtype).eps)
    if state["stationarity"] <= tol and state.get("feasibility", 0.0) <= tol:
        return Status.CONVERGED
    if state.get("status"):
        said = Status(state["status"])
        return solver.short_of_tolerance if said is Status.DONE else said
    if stop:
        return Status.INTERRUPTED
    if state["iteration"] >= max_iter:
        return Status.MAX_ITER
    if max_seconds is not None and state["seconds"] >= max_seconds:
        return Status.MAX_SECONDS
    return None


def code_error(H: Tensor, R: Tensor, multipliers: Tensor) -> float:
    """Return to first order how far the codes are from stationary ones, relative to their size, where G = HΛ + R.

    A gradient that is small beside the whole may be all there is of a layer of small energy. Directions that the
    multipliers do not determine are left out.
    """
    values, vectors = torch.linalg.eigh(-multipliers)
    size = values.abs()
    # What is small beside the whole gradient is lost in the rounding of it.
    lost = max(UNDETERMINED, ROUNDING * torch.finfo(H.dtype).eps)
    inverse = torch.where(size > lost * size.max(), 1.0 / size, torch.zeros_like(size))
    error = R.double() @ (vectors * inverse)
    return stiefel.norm(error) / stiefel.norm(H.double())
