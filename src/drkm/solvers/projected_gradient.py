"""Projected gradient: H ← polar(H - αG), with backtracking."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.base import Dimensions, Solver, State, Status, point, point_parts, register
from drkm.validation import checks, parts
from drkm.validation.parts import Part

SUFFICIENT = 1e-4
MIN_LENGTH = 1e-12
#: beside so long a step H itself no longer counts: polar(-G) is where all longer ones end
LONGEST = 1e12


@register
@dataclass
class ProjectedGradient(Solver):
    """The method of the authors' later code, with K_1 kept and the gradient in closed form.

    Parameters
    ----------
    length : float
        First step length; every iteration begins with twice the length that the last one accepted.
    """

    length: float = 1.0
    name = "projected-gradient"

    def __post_init__(self) -> None:
        checks.number("length", self.length)

    def start(self, energy: Energy, H: Tensor) -> State:
        """Evaluate the energy at the start."""
        return {**point(H, energy.evaluate(H)), "length": self.length}

    def step(self, energy: Energy, state: State, tol: float) -> State:
        """Shorten the step until the energy falls in proportion to the squared distance moved."""
        H, G = state["H"], state["G"]
        length = min(2.0 * state["length"], LONGEST / max(stiefel.norm(G), MIN_LENGTH))
        while length > MIN_LENGTH:
            trial = stiefel.polar(H - length * G)
            moved = trial - H
            distance2 = stiefel.inner(moved, moved)
            if energy.value(trial) <= state["objective"] - SUFFICIENT / length * distance2:
                return {**point(trial, energy.evaluate(trial)), "length": length}
            length *= 0.5
        return {"status": Status.STALLED.value}

    def parts(self, dimensions: Dimensions) -> dict[str, Part]:
        """A point and the last length."""
        return {**point_parts(dimensions), "length": parts.positive}
