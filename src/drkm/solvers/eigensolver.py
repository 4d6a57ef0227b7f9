"""The solver for one layer, whose energy is quadratic and minimised by kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drkm.problem import stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.energy import LEADING_TOL, Energy
from drkm.solvers.base import Solver, register
from drkm.solvers.result import Status
from drkm.solvers.state import PointState

#: a start as stationary as this may consist of eigenvectors, but not of the leading ones
SETTLED = 0.1
#: eigenvalues below this share of the first are faint: a gradient that is small compared with the whole may be all of
#: theirs, and they are found to a tolerance of their own
FAINT, FAINT_TOL = 1e-3, 1e-6


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
        if _share(values, H.shape[1]) < 1:
            return replace(self.step(energy, state, FAINT_TOL), status=None)
        lowest = -0.5 / energy.eta[0] * values[: H.shape[1]].sum().item()
        if state.objective <= (1 - LEADING_TOL) * lowest:
            return state
        H = stiefel.polar(vectors[:, : H.shape[1]])
        return PointState.at(H, energy.value_and_gradient(H))

    def step(self, energy: Energy, state: PointState, tol: float) -> PointState:
        """Solve the eigenproblem."""
        H = state.H
        # The residual of an eigenvector is its part of the Riemannian gradient, summed here over all of them.
        values, start, _ = energy.first_eigenpairs()
        tol = 0.1 * tol / H.shape[1] ** 0.5 * _share(values, H.shape[1])
        vectors = leading_eigenpairs(energy.first, H.shape[1], like=H, start=start, tol=tol).vectors
        H = stiefel.polar(vectors)
        return state.moved(H, energy.value_and_gradient(H), status=Status.DONE)


def _share(values: Tensor, count: int) -> float:
    """Return the factor of the tolerance for the last of so many eigenvalues that is more than rounding; 1 at most."""
    wanted = values[:count].double()
    seen = wanted[wanted > torch.finfo(values.dtype).eps * wanted[0]]
    return min(1.0, seen[-1].item() / (FAINT * wanted[0].item())) if len(seen) else 1.0
