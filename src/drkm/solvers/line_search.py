"""Line search by backtracking along a retraction."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy, Evaluation
from drkm.solvers.accuracy import ROUNDING

SUFFICIENT = 1e-4
MIN_LENGTH = 1e-10


def rounding(value: float, dtype: torch.dtype) -> float:
    """Return the largest difference that rounding makes between two computed energies of the same point."""
    return 4 * torch.finfo(dtype).eps * abs(value)


def backtrack(
    energy: Energy, H: Tensor, direction: Tensor, value: float, slope: float, length: float, size_R: float = 0.0
) -> tuple[Tensor, Evaluation] | None:
    """Return the first trial point along the direction that lowers the energy enough, or None.

    The step shrinks to the minimum of the parabola through the value and slope at H and the value at the trial. An
    increase of a few rounding errors is accepted, because differences of J are no larger near the optimum.

    Rounding errors that all rows of a product share, as for samples that are nearly equal, do not average out in J, and
    may be as large as those of one sum of n terms. If the computed value at H is too low by that much, no point is low
    enough. Then the first trial is accepted whose Riemannian gradient is shorter than `size_R`, the one at H.
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
