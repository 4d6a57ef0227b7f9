"""Riemannian limited-memory BFGS, preconditioned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.machine.devices import size_on
from drkm.machine.layout import slices
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.base import Solver, register
from drkm.solvers.line_search import backtrack
from drkm.solvers.preconditioner import RowPreconditioner, row_preconditioner
from drkm.solvers.result import Status
from drkm.solvers.state import Block, Count, PointState
from drkm.solvers.warmup import warm_up
from drkm.validation import checks

#: Maximum length of a single step; the norm of H is √S.
MAX_STEP = 3.0
#: Iterations between updates of the preconditioner, which changes slowly.
REFRESH = 5
#: Entries of vectors that are copied at a time for their inner products.
STACKED = {"cpu": 1 << 13, "cuda": 1 << 20}


@dataclass(frozen=True, kw_only=True)
class LBFGSState(PointState):
    """A point, the last pairs of steps and gradient changes, and the preconditioner with its age."""

    S: list[Block] = field(default_factory=list)
    Y: list[Block] = field(default_factory=list)
    age: Count = 0
    preconditioner: RowPreconditioner | None = None


@register
@dataclass
class LBFGS(Solver[LBFGSState]):
    """Limited-memory BFGS on the Stiefel manifold.

    The inverse Hessian of the two-loop recursion starts from the row preconditioner. Stored pairs are differences in
    the surrounding space and only the final direction is projected: transporting every pair changes neither the
    number of iterations nor the optimum reached, and would cost more than the gradient at small n.

    Parameters
    ----------
    memory : int
        Number of pairs kept.
    warmup : bool
        Search for a good basin before the first iteration (`drkm.solvers.warmup`), unless the caller gave the initial
        codes.
    """

    memory: int = 10
    warmup: bool = True
    name = "lbfgs"
    state_class = LBFGSState

    def __post_init__(self) -> None:
        checks.integer("memory", self.memory, 1)
        checks.boolean("warmup", self.warmup)

    @property
    def blocks(self) -> int:
        """Number of n×S blocks: two per pair, and temporary ones of a step."""
        return 2 * self.memory + 40

    def prepare(self, energy: Energy, H: Tensor, is_late: Callable[[], bool]) -> Tensor:
        """Run the warm-up, unless it is switched off."""
        if not self.warmup:
            return H

        def minimise(energy: Energy, H: Tensor, tol: float, max_iter: int) -> Tensor:
            state = self.start(energy, H)
            for _ in range(max_iter):
                if state.stationarity <= tol or state.status or is_late():
                    break
                state = self.step(energy, state, tol)
            return state.H

        return warm_up(energy, H, minimise)

    def start(self, energy: Energy, H: Tensor) -> LBFGSState:
        """Evaluate the energy at the start."""
        return LBFGSState.at(H, energy.value_and_gradient(H))

    def step(self, energy: Energy, state: LBFGSState, tol: float) -> LBFGSState:
        """Take one quasi-Newton step."""
        H, R, S, Y = state.H, state.R, state.S, state.Y
        known = state.preconditioner if state.age % REFRESH else None
        preconditioner = known or fresh_preconditioner(energy, state)

        def precondition(Z: Tensor) -> Tensor:
            return preconditioner.apply(Z, H)

        direction = -stiefel.projection(H, two_loop(R, S, Y, precondition))
        slope = stiefel.inner(direction, R)
        size, size_R = stiefel.norms(direction, R)
        if slope > -1e-12 * size * size_R:
            S, Y = [], []
            direction = -stiefel.projection(H, precondition(R))
            slope, size = stiefel.inner(direction, R), stiefel.norm(direction)
        length = min(1.0, MAX_STEP / max(size, 1e-300))
        found = backtrack(energy, H, direction, state.objective, slope, length, size_R)
        if found is None:
            return replace(state, S=[], Y=[], age=0) if state.S else replace(state, status=Status.STALLED)
        new = state.moved(*found, preconditioner=preconditioner, age=state.age + 1)
        S, Y = with_pair(S, Y, new.H - H, new.R - R, 1e-10, self.memory)
        return replace(new, S=S, Y=Y)

    def belong_together(self, state: LBFGSState) -> bool:
        """Whether the pairs are consistent, and the preconditioner is there unless the next step makes a new one."""
        is_there = state.preconditioner is not None or state.age % REFRESH == 0
        return are_pairs(state.S, state.Y, self.memory) and is_there


def fresh_preconditioner(energy: Energy, state: PointState) -> RowPreconditioner:
    """Return the row preconditioner at the current point."""
    return row_preconditioner(energy, state.multipliers, state.curvature, state.H.dtype)


def are_pairs(S: list[Tensor], Y: list[Tensor], memory: int) -> bool:
    """Whether these can be the pairs of a solver that keeps at most `memory`."""
    return len(S) == len(Y) <= memory


def with_pair(
    S: list[Tensor], Y: list[Tensor], s: Tensor, y: Tensor, least: float, memory: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Append a step and its gradient change, scaled to ⟨s, y⟩ = 1, to the pairs, and drop the oldest.

    A pair whose curvature ⟨s, y⟩/(‖s‖‖y‖) is below `least` is unreliable and left out.
    """
    s, y = s.flatten(), y.flatten()
    curvature, (size_s, size_y) = stiefel.inner(s, y), stiefel.norms(s, y)
    if not curvature > least * size_s * size_y:
        return S, Y
    scale = curvature**-0.5
    return [*S, scale * s][-memory:], [*Y, scale * y][-memory:]


def two_loop(R: Tensor, S: list[Tensor], Y: list[Tensor], precondition: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the inverse Hessian approximation applied to R: the two-loop recursion with a preconditioned middle.

    The pairs are scaled to ⟨s, y⟩ = 1.
    """
    if not S:
        return precondition(R)
    if R.is_cuda or collectives.current() is not None:
        return _two_loop_of_sums(R, S, Y, precondition)
    q = R.flatten().clone()
    weights = []
    for s, y in zip(reversed(S), reversed(Y), strict=True):
        weights.append(torch.dot(s, q).item())
        q.add_(y, alpha=-weights[-1])
    last = precondition(Y[-1].view_as(R)).flatten()
    z = precondition(q.view_as(R)).flatten().div_(torch.dot(Y[-1], last).item())
    for weight, s, y in zip(reversed(weights), S, Y, strict=True):
        z.add_(s, alpha=weight - torch.dot(y, z).item())
    return z.view_as(R)


def _two_loop_of_sums(R: Tensor, S: list[Tensor], Y: list[Tensor], precondition: Callable[[Tensor], Tensor]) -> Tensor:
    """Compute the same from the inner products of all pairs: two synchronisations in all, not two per pair."""
    r, count = R.flatten(), len(S)
    products = collectives.total(_inner_products(S, [*Y, r])).tolist()
    alpha = [0.0] * count
    for i in reversed(range(count)):
        alpha[i] = products[i][count] - sum(alpha[j] * products[i][j] for j in range(i + 1, count))
    z = precondition(_add_multiples(r.clone(), Y, [-weight for weight in alpha]).view_as(R)).flatten()
    last = precondition(Y[-1].view_as(R)).flatten()
    own = torch.cat([_inner_products([z], Y)[0], _inner_products([last], Y[-1:])[0]])
    *along, curvature = collectives.total(own).tolist()
    weights: list[float] = []
    for i in range(count):
        older = sum(weight * products[j][i] for j, weight in enumerate(weights))
        weights.append(alpha[i] - along[i] / curvature - older)
    return _add_multiples(z / curvature, S, weights).view_as(R)


def _inner_products(left: list[Tensor], right: list[Tensor]) -> Tensor:
    """Return the inner products of vectors in float64, from a copy of some of their entries at a time."""
    total = torch.zeros(len(left), len(right), dtype=torch.float64, device=left[0].device)
    for part in slices(len(left[0]), size_on(left[0].device, STACKED)):
        total += torch.stack([v[part] for v in left]) @ torch.stack([v[part] for v in right]).T
    return total


def _add_multiples(z: Tensor, vectors: list[Tensor], weights: list[float]) -> Tensor:
    """Add multiples of vectors to z."""
    for vector, weight in zip(vectors, weights, strict=True):
        z.add_(vector, alpha=weight)
    return z
