"""Backtracking along a retraction."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy, Evaluation
from drkm.solvers.accuracy import ROUNDING

SUFFICIENT = 1e-4
MIN_LENGTH = 1e-10


def rounding(value: float, dtype: torch.dtype) -> float:
    """Return by how much two computed energies may differ at one and the same point."""
    return 4 * torch.finfo(dtype).eps * abs(value)


def backtrack(
    energy: Energy, H: Tensor, direction: Tensor, value: float, slope: float, length: float, size_R: float = 0.0
) -> tuple[Tensor, Evaluation] | None:
    """Return the first point along the direction that lowers the energy enough, or None.

    The step shrinks to the minimum of the parabola through the value and slope at H and the value at the trial.
    A rise of a few rounding errors is accepted: near the optimum differences of J are no larger.

    Errors that all rows of a product share, as they do where samples are alike, do not average out in J, and may reach
    those of one sum of n terms. If the value at H is too low by so much, no point is low enough. The first one then
    serves whose Riemannian gradient is shorter than `size_R`, that at H.
    """
    slack, doubtful = rounding(value, H.dtype), None
    within_rounding = ROUNDING * torch.finfo(H.dtype).eps * abs(value)
    while length > MIN_LENGTH:
        trial = stiefel.retraction(H, length * direction)
        evaluation = energy.value_and_gradient(trial)
        rise = evaluation.value - value
        if rise <= SUFFICIENT * length * slope + slack:
            return trial, evaluation
        if doubtful is None and rise <= within_rounding:
            gradient = stiefel.projection(trial, evaluation.gradient)
            doubtful = (trial, evaluation) if stiefel.norm(gradient) < size_R else None
        parabola = -slope * length / (2 * (rise - slope * length))
        length *= min(0.5, max(0.1, parabola))
    return doubtful
