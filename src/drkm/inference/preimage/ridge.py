"""A learned map from projections to inputs: kernel ridge regression on the training points."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram.cost import RIDGE_ROWS
from drkm.inference.preimage.descent import Minima
from drkm.inference.subspace import Components

PENALTIES = tuple(10.0**k for k in range(-10, 3))


@dataclass(frozen=True)
class RidgeMap:
    """x ≈ mean + Σ_j C_j exp(-‖z - z_j‖²/(2s²)), z the projection in orthonormal coordinates."""

    root: Tensor
    centres: Tensor
    coefficients: Tensor
    mean: Tensor
    scale2: float

    @classmethod
    def fit(cls, components: Components) -> RidgeMap:
        """Fit on at most `RIDGE_ROWS` evenly spaced training points, with the penalty chosen by leave-one-out error."""
        values, vectors = torch.linalg.eigh(components.M.double())
        root = (vectors * values.clamp(min=0).sqrt()).to(components.M)
        Z = collectives.spread_rows(components.training_coordinates(), RIDGE_ROWS) @ root
        X = collectives.spread_rows(components.X, RIDGE_ROWS)
        mean = X.mean(dim=0)
        squared = torch.cdist(Z, Z).square()
        upper = squared[torch.triu_indices(len(Z), len(Z), 1).unbind()]
        scale2 = float(upper.median()) if len(upper) else 1.0
        scale2 = scale2 if scale2 > 0 else 1.0
        spectrum, Q = torch.linalg.eigh(torch.exp(-squared / (2 * scale2)).double())
        target = Q.T @ (X - mean).double()
        best, coefficients = float("inf"), target
        for penalty in PENALTIES:
            damped = 1.0 / (spectrum.clamp(min=0) + penalty)
            dual = Q @ (damped[:, None] * target)
            # Leave-one-out residuals of ridge regression: dual coefficients over the diagonal of (G + αI)⁻¹.
            error = float((dual / ((Q * Q) @ damped)[:, None]).square().sum())
            if error < best:
                best, coefficients = error, dual
        return cls(root, Z, coefficients.to(X), mean, scale2)

    def search(self, coordinates: Tensor) -> Minima:
        """Return the points for the projections, in the format of a search with one step."""
        Z = coordinates @ self.root
        points = torch.empty(len(Z), len(self.mean), dtype=Z.dtype, device=Z.device)
        for i in range(0, len(Z), 1024):
            G = torch.exp(-torch.cdist(Z[i : i + 1024], self.centres).square() / (2 * self.scale2))
            points[i : i + 1024] = self.mean + G @ self.coefficients
        ones = torch.ones(len(Z), dtype=torch.long, device=Z.device)
        return Minima(points, Z.new_zeros(len(Z)), ones, ones.bool())
