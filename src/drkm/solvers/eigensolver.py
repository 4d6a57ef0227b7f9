"""The solver for one layer, whose energy is quadratic and minimised by kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.energy import LEADING_TOL, Energy
from drkm.solvers.base import Solver, register
from drkm.solvers.result import Status
from drkm.solvers.state import PointState

#: a start as stationary as this may consist of eigenvectors, but not of the leading ones
SETTLED = 0.1


@register
@dataclass
class Eigensolver(Solver[PointState]):
    """Compute the leading eigenvectors of K_1 to the tolerance of the fit; they do not depend on the start."""

    name = "eigensolver"
    state_class = PointState

    def start(self, energy: Energy, H: Tensor) -> PointState:
        """Evaluate the energy at the start, or at kernel PCA if the start consists of other eigenvectors."""
        if len(energy.sizes) > 1:
            raise ValueError(f"solver: Eigensolver is for one layer, got {len(energy.sizes)} layers")
        state = PointState.at(H, energy.value_and_gradient(H))
        if state.stationarity > SETTLED:
            return state
        values, vectors, _ = energy.first_eigenpairs()
        lowest = -0.5 / energy.eta[0] * values[: H.shape[1]].sum().item()
        if state.objective <= (1 - LEADING_TOL) * lowest:
            return state
        H = stiefel.polar(vectors[:, : H.shape[1]])
        return PointState.at(H, energy.value_and_gradient(H))

    def step(self, energy: Energy, state: PointState, tol: float) -> PointState:
        """Solve the eigenproblem."""
        H = state.H
        # The residual of an eigenvector is its part of the Riemannian gradient, summed here over all of them.
        tol = 0.1 * tol / H.shape[1] ** 0.5
        start = energy.first_eigenpairs().vectors
        vectors = leading_eigenpairs(energy.first, H.shape[1], like=H, start=start, tol=tol).vectors
        H = stiefel.polar(vectors)
        return state.moved(H, energy.value_and_gradient(H), status=Status.DONE)
