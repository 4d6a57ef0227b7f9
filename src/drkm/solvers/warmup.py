"""The warm-up, which moves a start close to a good optimum before the first iteration.

Layer-wise kernel PCA is close to a saddle point, and the energy of narrow deep kernels has many local optima. Two
methods cost less than the iterations that they save, and reach lower optima (docs/solvers.md has the numbers):

* coarse steps, if the deep kernels barely depend on the codes: solve the frozen problem in a small subspace (`coarse`);
* continuation, if a deep kernel is narrower than the spread of its input codes: begin with a kernel of that width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy, Evaluation
from drkm.solvers.coarse import coarse_step

#: A start this close to stationary needs no warm-up.
NEAR = 5e-3
#: Deep kernels at least this much wider than the spread of the codes barely depend on them, and may be frozen.
WIDE = 4.0
MAX_COARSE = 4
#: A coarse step must bring the stationarity down to this fraction to be followed by one more.
COARSE_GAIN = 0.3
#: Tolerance to which the problem with wider kernels is solved.
WIDER_TOL, WIDER_ITER = 1e-2, 100

#: Minimises an energy from a point: (energy, H, tolerance, largest number of iterations) → H.
Minimise = Callable[[Energy, Tensor, float, int], Tensor]


def warm_up(energy: Energy, H: Tensor, minimise: Minimise) -> Tensor:
    """Return a better starting point than H."""
    if len(energy.sizes) == 1:
        return H
    evaluation = energy.value_and_gradient(H)
    if stiefel.stationarity(H, evaluation.gradient) <= NEAR:
        return H
    if all(width is not None and width >= WIDE for width in energy.relative_widths()):
        return _coarse(energy, H, evaluation)
    wider = energy.widened()
    return H if wider is None else minimise(wider, H, WIDER_TOL, WIDER_ITER)


def _coarse(energy: Energy, H: Tensor, evaluation: Evaluation) -> Tensor:
    """Repeat coarse steps while they lower the energy and the stationarity decreases fast."""
    near = stiefel.stationarity(H, evaluation.gradient)
    for _ in range(MAX_COARSE):
        candidate = coarse_step(energy, H, evaluation.gradient)
        if candidate is None:
            break
        found = energy.value_and_gradient(candidate)
        if found.value >= evaluation.value:
            break
        H, evaluation = candidate, found
        before, near = near, stiefel.stationarity(H, evaluation.gradient)
        if near > COARSE_GAIN * before:
            break
    return H
