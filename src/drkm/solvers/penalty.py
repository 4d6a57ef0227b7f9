"""Algorithm 1 of the paper: a quadratic penalty with warm starts, whose subproblems are solved by Adam.

It is included to reproduce the published results. It leaves the manifold, and from a random start it does not reach the
optimum of the constrained problem (see docs/solvers.md); `solver="auto"` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.problem.learning import RANGE, learnable_layers, set_bandwidths
from drkm.solvers.base import Solver, register
from drkm.solvers.result import Status
from drkm.solvers.state import Codes, Count, Logs, NotNegative, Positive, State
from drkm.validation import checks

#: Adam's own constants, as published
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
#: bounds of a learned log σ² relative to its initial value: minimising the energy alone would let it grow forever
LOG_RANGE = math.log(RANGE)


@dataclass(frozen=True)
class LearnedBandwidths:
    """log σ² of the layers that have one, their initial values, and their moments in Adam."""

    log_sigma2: Logs
    start: Logs
    m: Logs
    v: Logs


@dataclass(frozen=True, kw_only=True)
class PenaltyState(State):
    """A point off the manifold with the gradient of Q, the moments of Adam, the round and the step in it."""

    Q: Codes
    gradient_norm: NotNegative
    m: Codes
    v: Codes
    adam_steps: Count = 0
    mu: Positive
    tau: Positive
    round: Count = 0
    bandwidths: LearnedBandwidths | None = None


@register
@dataclass
class Penalty(Solver[PenaltyState]):
    """Minimise J + Σ λ_l/2 tr(H_lᵀH_l) + μ/2 ‖HᵀH - I‖² for a growing μ (Algorithm 1 of the paper).

    Parameters
    ----------
    lam : float or sequence of float, optional
        λ_l of each layer. A fit uses those of the estimator; otherwise the default is 1.
    learning_rate, mu, tau, growth : float
        Learning rate of Adam, initial penalty μ_0, initial tolerance τ_0 (halved in every round) and growth p of μ.
    inner : int
        Maximum number of Adam steps per round.
    outer : int, optional
        Number of rounds; by default as published: 2 up to n = 100, 4 up to 200 and 7 above.
    learn_bandwidth : bool, optional
        Optimise log σ² of every layer together with the codes. A fit uses the setting of the estimator; otherwise the
        default is not to.
    """

    lam: float | Sequence[float] | None = None
    learning_rate: float = 1e-3
    mu: float = 1.0
    tau: float = 0.1
    growth: float = 8.0
    inner: int = 500
    outer: int | None = None
    learn_bandwidth: bool | None = None
    name = "penalty"
    state_class = PenaltyState
    on_manifold = False
    has_schedule = True
    short_of_tolerance = Status.SCHEDULE_ENDED

    def __post_init__(self) -> None:
        for name in ("learning_rate", "mu", "tau", "growth"):
            checks.number(name, getattr(self, name))
        if self.growth <= 1:
            raise ValueError(f"growth: expected a number above 1, got {self.growth}")
        checks.integer("inner", self.inner, 1)
        if self.outer is not None:
            checks.integer("outer", self.outer, 1)
        if self.learn_bandwidth is not None:
            checks.boolean("learn_bandwidth", self.learn_bandwidth)

    def of_model(self, lam: Sequence[float], learn_bandwidth: bool) -> Penalty:
        """Return the solver with λ_l and `learn_bandwidth` of the model, unless it was made with other values."""
        own = None if self.lam is None else self._weights(len(lam))
        for name, mine, model in (
            ("lam", own, tuple(lam)),
            ("learn_bandwidth", self.learn_bandwidth, learn_bandwidth),
        ):
            if mine is not None and mine != model:
                raise ValueError(
                    f"solver: Penalty has {name}={mine} and the model {name}={model}, set {name} on the model only"
                )
        return replace(self, lam=lam, learn_bandwidth=learn_bandwidth)

    def _weights(self, layers: int) -> tuple[float, ...]:
        """Return λ_l of each layer."""
        return checks.per_layer("solver: lam of Penalty", 1.0 if self.lam is None else self.lam, layers)

    def rounds(self, n: int) -> int:
        """Return the number of rounds for n samples."""
        return self.outer if self.outer is not None else 2 if n <= 100 else 4 if n <= 200 else 7

    def start(self, energy: Energy, H: Tensor) -> PenaltyState:
        """Begin the first round."""
        bandwidths, zero = None, torch.zeros_like(H)
        if self.learn_bandwidth:
            sigma2 = [energy.kernels[layer].bandwidth for layer in learnable_layers(energy)]
            logs = torch.tensor(sigma2, dtype=torch.float64).log()
            bandwidths = LearnedBandwidths(logs, logs.clone(), torch.zeros_like(logs), torch.zeros_like(logs))
        point = self._evaluate(energy, H, self.mu)
        return PenaltyState(**point, m=zero, v=zero, tau=self.tau, bandwidths=bandwidths)

    def step(self, energy: Energy, state: PenaltyState, tol: float) -> PenaltyState:
        """Take one step of Adam, or begin the next round with a larger penalty."""
        if state.gradient_norm <= state.tau or state.adam_steps >= self.inner:
            return self._next_round(energy, state)
        t = state.adam_steps + 1
        H, m, v = self._adam(state.H, state.Q, state.m, state.v, t)
        bandwidths = self._learned(energy, state.H, state.bandwidths, t) if state.bandwidths else None
        return replace(state, **self._evaluate(energy, H, state.mu), m=m, v=v, adam_steps=t, bandwidths=bandwidths)

    def _next_round(self, energy: Energy, state: PenaltyState) -> PenaltyState:
        if state.round + 1 >= self.rounds(energy.n):
            return replace(state, status=Status.DONE)
        zero, bandwidths = torch.zeros_like(state.H), state.bandwidths
        if bandwidths:
            zeros = torch.zeros_like(bandwidths.log_sigma2)
            bandwidths = replace(bandwidths, m=zeros, v=zeros)
        point = self._evaluate(energy, state.H, self.growth * state.mu)
        new = replace(state, **point, m=zero, v=zero, adam_steps=0, bandwidths=bandwidths)
        return replace(new, tau=state.tau / 2, round=state.round + 1)

    def _learned(self, energy: Energy, H: Tensor, known: LearnedBandwidths, t: int) -> LearnedBandwidths:
        """Return the bandwidths after one step of Adam, and set them in the energy."""
        gradient = [energy.bandwidth_gradient(H, layer) for layer in learnable_layers(energy)]
        logs, m, v = self._adam(known.log_sigma2, torch.tensor(gradient, dtype=torch.float64), known.m, known.v, t)
        logs = torch.minimum(torch.maximum(logs, known.start - LOG_RANGE), known.start + LOG_RANGE)
        self._set_bandwidths(energy, logs)
        return LearnedBandwidths(logs, known.start, m, v)

    def _adam(self, x: Tensor, g: Tensor, m: Tensor, v: Tensor, t: int) -> tuple[Tensor, Tensor, Tensor]:
        m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
        step = self.learning_rate * (m / (1 - BETA1**t)) / ((v / (1 - BETA2**t)).sqrt() + EPSILON)
        return x - step, m, v

    def _evaluate(self, energy: Energy, H: Tensor, mu: float) -> dict[str, Any]:
        """Return J and the gradient of the penalised objective Q, equation (22) of the paper.

        Q = J + Σ_l λ_l/2 tr(H_lᵀH_l) + μ/2 ‖HᵀH - I‖²,
        ∂Q/∂H_l = ∂J/∂H_l + λ_l H_l + block l of 2μ H(HᵀH - I)
        """
        value, G, _ = energy.value_and_gradient(H)
        defect = stiefel.defect(H)
        Q = G + 2 * mu * (H @ defect.to(H.dtype))
        for block, weight in zip(energy.slices, self._weights(len(energy.sizes)), strict=True):
            Q[:, block] += weight * H[:, block]
        return {
            "H": H,
            "mu": mu,
            "Q": Q,
            "gradient_norm": stiefel.norm(Q),
            "objective": value,
            "feasibility": float(defect.norm()),
            "stationarity": stiefel.stationarity(H, G),
        }

    def _set_bandwidths(self, energy: Energy, log_sigma2: Tensor) -> None:
        set_bandwidths(energy, dict(zip(learnable_layers(energy), log_sigma2.exp().tolist(), strict=True)))

    def resume(self, energy: Energy, state: PenaltyState) -> None:
        """Set the bandwidths of a stored state in the energy."""
        if state.bandwidths:
            self._set_bandwidths(energy, state.bandwidths.log_sigma2)

    def belong_together(self, state: PenaltyState) -> bool:
        """Whether the state has bandwidths if this solver learns them."""
        return (state.bandwidths is not None) == bool(self.learn_bandwidth)
