"""Projected gradient: H ← polar(H - αG), with backtracking."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.base import Solver, register
from drkm.solvers.result import Status
from drkm.solvers.state import PointState, Positive
from drkm.validation import checks

SUFFICIENT = 1e-4
MIN_LENGTH = 1e-12
#: for steps longer than this H itself no longer matters: they all end at polar(-G)
LONGEST = 1e12


@dataclass(frozen=True, kw_only=True)
class ProjectedGradientState(PointState):
    """A point and the length of the last step."""

    length: Positive


@register
@dataclass
class ProjectedGradient(Solver[ProjectedGradientState]):
    """The method of the authors' later code, with K_1 kept and the gradient in closed form.

    Parameters
    ----------
    length : float
        Initial step length; every iteration begins with twice the length that the last one accepted.
    """

    length: float = 1.0
    name = "projected-gradient"
    state_class = ProjectedGradientState

    def __post_init__(self) -> None:
        checks.number("length", self.length)

    def start(self, energy: Energy, H: Tensor) -> ProjectedGradientState:
        """Evaluate the energy at the start."""
        return ProjectedGradientState.at(H, energy.value_and_gradient(H), length=self.length)

    def step(self, energy: Energy, state: ProjectedGradientState, tol: float) -> ProjectedGradientState:
        """Shorten the step until the energy decreases in proportion to the squared distance moved."""
        H, G = state.H, state.G
        length = min(2.0 * state.length, LONGEST / max(stiefel.norm(G), MIN_LENGTH))
        while length > MIN_LENGTH:
            trial = stiefel.polar(H - length * G)
            moved = trial - H
            distance2 = stiefel.inner(moved, moved)
            if energy.value(trial) <= state.objective - SUFFICIENT / length * distance2:
                return state.moved(trial, energy.value_and_gradient(trial), length=length)
            length *= 0.5
        return replace(state, status=Status.STALLED)
