"""From a start to the neighbourhood of a good optimum, before the first iteration.

Layer-wise kernel PCA is close to a saddle point, and the energy has many local optima. Three devices find a low one in
less time than the iterations that they save:

* coarse steps, where the deep kernels barely depend on the codes: the frozen problem in a small subspace (`coarse`);
* a nested problem for many samples: solve for a part of them and carry the codes over to all (`nested`);
* continuation for few samples: solve with wider deep kernels first, whose energy has fewer optima.

docs/solvers.md shows what each is worth.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from drkm import stiefel
from drkm.energy import Energy, Evaluation
from drkm.solvers.coarse import coarse_step
from drkm.solvers.nested import restrict

#: A start this close to stationary needs no warming up, and coarse steps that do not get there are given up.
NEAR = 5e-3
MAX_COARSE = 4
#: Once near, another coarse step must bring the stationarity down to this fraction to be followed by one more.
COARSE_GAIN = 0.3
#: Deep bandwidths of the continuation, relative to the final ones, and how far each problem is solved.
WIDER = (10.0, 3.0)
WIDER_TOL, WIDER_ITER = 1e-2, 60
NESTED_TOL, NESTED_ITER = 1e-3, 150

#: Minimises an energy from a point: (energy, H, tolerance, largest number of iterations) → H.
Minimise = Callable[[Energy, Tensor, float, int], Tensor]


def warm_up(energy: Energy, H: Tensor, minimise: Minimise) -> Tensor:
    """Return a better place to begin than H."""
    if len(energy.sizes) == 1:
        return H
    evaluation = energy.evaluate(H)
    if stiefel.stationarity(H, evaluation.gradient) <= NEAR:
        return H
    settled, near = _coarse(energy, H, evaluation)
    if near <= NEAR:
        return settled
    part = restrict(energy, H)
    if part is None:
        return _continue(energy, H, minimise)
    start = _continue(part.energy, part.H, minimise) if part.is_smallest else warm_up(part.energy, part.H, minimise)
    candidate = part.prolong(minimise(part.energy, start, NESTED_TOL, NESTED_ITER))
    return candidate if energy.value(candidate) < evaluation.value else H


def _coarse(energy: Energy, H: Tensor, evaluation: Evaluation) -> tuple[Tensor, float]:
    """Repeat coarse steps while they lower the energy; return where they lead and the stationarity there."""
    near = stiefel.stationarity(H, evaluation.gradient)
    for _ in range(MAX_COARSE):
        candidate = coarse_step(energy, H, evaluation.gradient)
        if candidate is None:
            break
        found = energy.evaluate(candidate)
        if found.value >= evaluation.value:
            break
        H, evaluation = candidate, found
        before, near = near, stiefel.stationarity(H, evaluation.gradient)
        if near <= NEAR and near > COARSE_GAIN * before:
            break
    return H, near


def _continue(energy: Energy, H: Tensor, minimise: Minimise) -> Tensor:
    """Solve with the widest deep kernels, which coarse steps suit, then with narrower ones."""
    for factor in WIDER:
        wider = energy.widened(factor)
        if wider is None:
            return H
        if factor == WIDER[0]:
            H, _ = _coarse(wider, H, wider.evaluate(H))
        H = minimise(wider, H, WIDER_TOL, WIDER_ITER)
    return H
