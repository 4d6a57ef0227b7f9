"""Augmented Lagrangian: multipliers for HᵀH = I, subproblems by limited-memory BFGS off the manifold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.base import Solver, register
from drkm.solvers.lbfgs import MAX_STEP, are_pairs, two_loop, with_pair
from drkm.solvers.line_search import rounding
from drkm.solvers.result import Status
from drkm.solvers.state import Block, Codes, Count, NotNegative, Square, State
from drkm.validation import checks

SUFFICIENT, MIN_LENGTH = 1e-4, 1e-14
MAX_PENALTY = 100.0
MAX_ROUNDS = 200


@dataclass(frozen=True, kw_only=True)
class AugmentedLagrangianState(State):
    """A point off the manifold with the gradients of J and of the Lagrangian, pairs, multipliers, and its round."""

    G: Codes
    L: Codes
    Y: Square
    pairs_s: list[Block] = field(default_factory=list)
    pairs_y: list[Block] = field(default_factory=list)
    lagrangian: float
    mu: NotNegative
    #: ‖HᵀH - I‖_F at the end of the previous round
    last: NotNegative = 1.0
    inner_steps: Count = 0
    rounds: Count = 0


@register
@dataclass
class AugmentedLagrangian(Solver[AugmentedLagrangianState]):
    """Minimise J + ½⟨Y, HᵀH - I⟩ + μ/4 ‖HᵀH - I‖² over H, updating the multipliers Y in between.

    The constraint is satisfied only in the limit. On this problem the method is slower than the Riemannian solvers; it
    is included for comparison.

    Parameters
    ----------
    mu : float, optional
        Initial penalty; by default the norm of the gradient at the start.
    growth : float
        Factor by which μ grows if a round leaves more than a quarter of the infeasibility.
    memory : int
        Pairs kept by the inner BFGS.
    inner : int
        Maximum number of steps per round.
    """

    mu: float | None = None
    growth: float = 4.0
    memory: int = 30
    inner: int = 50
    name = "augmented-lagrangian"
    state_class = AugmentedLagrangianState
    on_manifold = False

    def __post_init__(self) -> None:
        if self.mu is not None:
            checks.number("mu", self.mu)
        checks.number("growth", self.growth)
        checks.integer("memory", self.memory, 1)
        checks.integer("inner", self.inner, 1)

    @property
    def blocks(self) -> int:
        """Number of n×S blocks: two per pair, temporary ones of a step, and gaps that freed ones leave in memory."""
        return 2 * self.memory + 40

    def start(self, energy: Energy, H: Tensor) -> AugmentedLagrangianState:
        """Start with the multipliers that stationarity would imply at the start."""
        H = stiefel.polar(H)
        G = energy.value_and_gradient(H).gradient
        Y = -stiefel.multipliers(H, G)
        mu = self.mu if self.mu is not None else stiefel.norm(G)
        return AugmentedLagrangianState(**self._evaluate(energy, H, Y, mu))

    def step(self, energy: Energy, state: AugmentedLagrangianState, tol: float) -> AugmentedLagrangianState:
        """Take one BFGS step, or update the multipliers if the round is solved well enough."""
        target = max(0.1 * min(state.last, 1.0), 0.1 * tol) * stiefel.norm(state.G)
        if stiefel.norm(state.L) <= target or state.inner_steps >= self.inner:
            return self._next_round(energy, state)
        H, L, S, D = state.H, state.L, state.pairs_s, state.pairs_y
        direction = -two_loop(L, S, D, lambda Z: Z if S else Z / stiefel.norm(L))
        slope = stiefel.inner(direction, L)
        if slope >= 0:
            return replace(state, pairs_s=[], pairs_y=[], inner_steps=state.inner_steps + 1)
        # Far from HᵀH = I distances of codes are nothing but rounding, and the computed energy may decrease forever.
        length = min(1.0, MAX_STEP / max(stiefel.norm(direction), 1e-300))
        slack = rounding(state.lagrangian, H.dtype)
        while length > MIN_LENGTH:
            trial = self._evaluate(energy, H + length * direction, state.Y, state.mu)
            if trial["lagrangian"] <= state.lagrangian + SUFFICIENT * length * slope + slack:
                break
            length *= 0.5
        else:
            return self._next_round(energy, state)
        S, D = with_pair(S, D, trial["H"] - H, trial["L"] - L, 1e-12, self.memory)
        return replace(state, **trial, pairs_s=S, pairs_y=D, inner_steps=state.inner_steps + 1)

    def _next_round(self, energy: Energy, state: AugmentedLagrangianState) -> AugmentedLagrangianState:
        if state.rounds >= MAX_ROUNDS:
            return replace(state, status=Status.STALLED)
        Y = state.Y + state.mu * stiefel.defect(state.H)
        # A larger penalty would only worsen the conditioning: the multipliers must do the rest.
        limit = MAX_PENALTY * stiefel.norm(state.G)
        grow = state.feasibility > 0.25 * state.last and state.mu < limit
        mu = state.mu * (self.growth if grow else 1.0)
        return replace(
            state,
            **self._evaluate(energy, state.H, Y, mu),
            pairs_s=[],
            pairs_y=[],
            last=state.feasibility,
            inner_steps=0,
            rounds=state.rounds + 1,
        )

    def _evaluate(self, energy: Energy, H: Tensor, Y: Tensor, mu: float) -> dict[str, Any]:
        """Return the fields of a state at a point with these multipliers and this penalty."""
        value, G, _ = energy.value_and_gradient(H)
        defect = stiefel.defect(H)
        return {
            "H": H,
            "Y": Y,
            "mu": mu,
            "G": G,
            "L": G + H @ (Y + mu * defect).to(H.dtype),
            "lagrangian": value + 0.5 * float((Y * defect).sum()) + 0.25 * mu * float(defect.square().sum()),
            "objective": value,
            "feasibility": float(defect.norm()),
            "stationarity": stiefel.stationarity(H, G),
        }

    def belong_together(self, state: AugmentedLagrangianState) -> bool:
        """Whether the stored pairs are consistent."""
        return are_pairs(state.pairs_s, state.pairs_y, self.memory)
