"""The result of every solver: the best point with its certificate, why the solver stopped, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor

from drkm.machine import memory
from drkm.validation import parts
from drkm.validation.parts import Part
from drkm.wording import counted


class Status(StrEnum):
    """Why a solver stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_SECONDS = "max_seconds"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    #: only in files of earlier versions: codes of small energy still moved when a limit was reached
    UNSETTLED = "unsettled"
    SCHEDULE_ENDED = "schedule_ended"
    ABANDONED = "abandoned"
    #: set by a step whose algorithm has nothing left to do; the result says whether that was enough
    DONE = "done"

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        return EARLIER.get(str(value))

    @property
    def cut_short(self) -> bool:
        """Whether the run was cut short and can be resumed."""
        return self in (Status.INTERRUPTED, Status.MAX_SECONDS)


#: what files, checkpoints and pickles of earlier versions have for a status
EARLIER: dict[str, Status] = {"given_up": Status.ABANDONED}
#: advice that gives codes of small energy more weight
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
    """The result of a solver.

    Attributes
    ----------
    H : Tensor of shape (n, S)
        The best point.
    objective, feasibility, stationarity : float
        J, ‖HᵀH - I‖_F and the relative norm of the Riemannian gradient there.
    n_iter, n_evaluations : int
        Number of iterations, and of evaluations of the energy.
    seconds : float
        Time spent, including the parts before an interruption and earlier rounds of learning kernels.
    status : Status
        Why it stopped.
    history : list of dict
        One entry per iteration: iteration, objective, stationarity, feasibility, seconds.
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
        """Return all fields but H as JSON values."""
        return {**{name: value for name, value in vars(self).items() if name != "H"}, "status": self.status.value}

    @classmethod
    def from_facts(cls, H: Tensor, facts: dict[str, Any]) -> Result:
        """Rebuild a result from H and `facts`, after a check."""
        parts.check(facts, FACTS)
        return cls(H=H, **{**facts, "status": Status(facts["status"])})

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status is Status.CONVERGED

    @property
    def outcome(self) -> str:
        """A short description of how the run ended."""
        numbers = f"stationarity {self.stationarity:.2g}, feasibility {self.feasibility:.2g}"
        steps = counted(self.n_iter, "iteration")
        if self.converged:
            return f"converged in {steps} ({numbers})"
        return f"did not converge ({self.status.value} after {steps}, {numbers})"

    @property
    def advice(self) -> str:
        """Advice on what to change, if it did not converge."""
        if self.status is Status.STALLED and self.H.dtype != torch.float64:
            return ADVICE[self.status] + " or dtype='float64'"
        return ADVICE.get(self.status, "")


_ENTRY: dict[str, Part] = {
    "iteration": parts.count(),
    "objective": parts.number(),
    "stationarity": parts.number(0),
    "feasibility": parts.number(0),
    "seconds": parts.number(0),
}
HISTORY = parts.several(parts.group(_ENTRY))
HISTORY_COLUMNS = tuple(_ENTRY)
#: bytes of an entry as a dict and as a list
ENTRY = 450
#: fields of a result besides its codes
FACTS: dict[str, Part] = {
    "objective": parts.number(),
    "feasibility": parts.number(0),
    "stationarity": parts.number(0),
    "n_iter": parts.count(),
    "n_evaluations": parts.count(),
    "seconds": parts.number(0),
    "status": parts.choice(*Status, *EARLIER),
    "history": HISTORY,
}


def history_tensor(history: Sequence[Mapping[str, float]]) -> Tensor:
    """Return a history as a matrix, which takes a third of the size of text."""
    rows = [[entry[name] for name in HISTORY_COLUMNS] for entry in history]
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, len(HISTORY_COLUMNS))


def history_entries(matrix: Tensor) -> list[dict[str, float]]:
    """Rebuild the history from `history_tensor`."""
    memory.require(ENTRY * len(matrix), "cpu", f"path: a history of {len(matrix)} entries")
    entries = [dict(zip(HISTORY_COLUMNS, row, strict=True)) for row in matrix.tolist()]
    for entry in entries:
        # A number that is not an integer is kept, so that a later check finds it.
        if (iteration := entry["iteration"]).is_integer():
            entry["iteration"] = int(iteration)
    return entries
