"""Riemannian trust region: Newton's method with truncated conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.base import Solver, register
from drkm.solvers.lbfgs import fresh_preconditioner
from drkm.solvers.line_search import rounding
from drkm.solvers.result import Status
from drkm.solvers.state import PointState, Positive
from drkm.validation import checks


@dataclass(frozen=True, kw_only=True)
class TrustRegionState(PointState):
    """A point and the radius of the region around it."""

    radius: Positive


@register
@dataclass
class TrustRegion(Solver[TrustRegionState]):
    """Newton's method on the Stiefel manifold with exact Hessian products.

    The model of the energy around H is minimised by conjugate gradients (Steihaug's rule: stop at the boundary or at
    negative curvature) with the row preconditioner; convergence is eventually quadratic.

    Parameters
    ----------
    max_inner : int
        Maximum number of Hessian products per iteration.
    """

    max_inner: int = 100
    name = "trust-region"
    state_class = TrustRegionState

    def __post_init__(self) -> None:
        checks.integer("max_inner", self.max_inner, 1)

    def start(self, energy: Energy, H: Tensor) -> TrustRegionState:
        """Evaluate the energy at the start."""
        return TrustRegionState.at(H, energy.value_and_gradient(H), radius=0.5)

    def step(self, energy: Energy, state: TrustRegionState, tol: float) -> TrustRegionState:
        """Minimise the model inside the region, move if the energy agrees with it, and adapt the radius."""
        H, G, R, radius = state.H, state.G, state.R, state.radius
        euclidean = energy.hessian(H)

        def hessian(Z: Tensor) -> Tensor:
            return stiefel.hessian(H, state.multipliers, Z, euclidean(Z))

        rows = fresh_preconditioner(energy, state)

        def precondition(Z: Tensor) -> Tensor:
            return stiefel.projection(H, rows.apply(Z, H))

        norm = stiefel.norm(R)
        target = norm * min(0.1, math.sqrt(norm / stiefel.norm(G)))
        step, decrease, at_boundary = truncated_cg(hessian, precondition, R, radius, target, self.max_inner)
        if stiefel.norm(step) == 0:
            return replace(state, status=Status.STALLED)
        trial = stiefel.retraction(H, step)
        evaluation = energy.value_and_gradient(trial)
        slack = rounding(state.objective, H.dtype)
        actual = state.objective - evaluation.value
        ratio = (actual + slack) / (decrease + slack)
        if ratio < 0.25:
            radius = 0.25 * min(radius, stiefel.norm(step))
        elif ratio > 0.75 and at_boundary:
            radius = min(2 * radius, math.sqrt(H.shape[1]))
        if ratio > 0.05 and actual >= -slack:
            return state.moved(trial, evaluation, radius=radius)
        if radius < 1e-12:
            return replace(state, status=Status.STALLED)
        return replace(state, radius=radius)


def truncated_cg(
    hessian: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
    R: Tensor,
    radius: float,
    target: float,
    max_inner: int,
) -> tuple[Tensor, float, bool]:
    """Return an approximate minimiser of ⟨R, Z⟩ + ½⟨Z, Hess Z⟩ for ‖Z‖ ≤ radius, its decrease, and if it was cut off.

    The region is a ball in the Euclidean norm.
    """
    Z, HZ, r = torch.zeros_like(R), torch.zeros_like(R), R
    z = precondition(r)
    d, rz = -z, stiefel.inner(r, z)
    for _ in range(max_inner):
        Hd = hessian(d)
        dHd = stiefel.inner(d, Hd)
        alpha = rz / dHd if dHd > 0 else math.inf
        if dHd <= 0 or stiefel.norm(Z + alpha * d) >= radius:
            tau = _to_boundary(Z, d, radius)
            Z, HZ = Z + tau * d, HZ + tau * Hd
            return Z, -_model(R, Z, HZ), True
        Z, HZ, r = Z + alpha * d, HZ + alpha * Hd, r + alpha * Hd
        # If ⟨r, z⟩ is exactly 0, as can happen in float32, no step is left to take.
        if stiefel.norm(r) <= target or rz == 0:
            break
        z = precondition(r)
        rz_new = stiefel.inner(r, z)
        d, rz = -z + (rz_new / rz) * d, rz_new
    return Z, -_model(R, Z, HZ), False


def _to_boundary(Z: Tensor, d: Tensor, radius: float) -> float:
    dd, Zd, ZZ = stiefel.inner(d, d), stiefel.inner(Z, d), stiefel.inner(Z, Z)
    return (-Zd + math.sqrt(Zd**2 + dd * max(radius**2 - ZZ, 0.0))) / dd


def _model(R: Tensor, Z: Tensor, HZ: Tensor) -> float:
    return stiefel.inner(R, Z) + 0.5 * stiefel.inner(Z, HZ)
