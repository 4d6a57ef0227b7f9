"""An approximate inverse of the Hessian from what a gradient evaluation leaves behind.

At a tangent vector Z the Hessian of the energy on the manifold is Z(-Λ) - [K_1Z_1, …, K_LZ_L] + …, where Λ holds the
multipliers. Away from the leading eigenvectors of the K_l, which the codes already span, the kernel matrices add
little, and what remains acts on each row alone: row i is multiplied by -Λ + d_i E, where d_i is the weight of the
sample's own code in the pull of the layer above and E selects the columns of the layer pulled on. Its inverse costs a
few thin products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.problem.energy import Energy

#: eigenvalues of -Λ below this fraction of their mean carry no reliable curvature
FLOOR = 0.1


class RowPreconditioner(NamedTuple):
    """The map Z ↦ ((ZB) ∘ scale)Bᵀ; a scale of None means ones."""

    basis: Tensor
    scale: Tensor | None

    def apply(self, Z: Tensor) -> Tensor:
        """Return the preconditioned block."""
        coordinates = Z @ self.basis
        return (coordinates if self.scale is None else coordinates * self.scale) @ self.basis.T


def row_preconditioner(
    energy: Energy, multipliers: Tensor, curvature: Sequence[Tensor | None], dtype: torch.dtype
) -> RowPreconditioner:
    """Return the map Z ↦ Z(-Λ + d_i E)⁻¹, made positive definite."""
    M = -multipliers
    # With more than one layer pulled on, only the lowest gets its own weight a row; the others get their mean.
    rows = curvature[0] if curvature else None
    for block, weight in zip(energy.slices[1:], curvature[1:], strict=False):
        if weight is not None:
            M[block, block].diagonal().add_(collectives.mean(weight).clamp_min(0).double())
    values, vectors = torch.linalg.eigh(M)
    values = values.abs()
    values = values.clamp_min(FLOOR * values.mean().item() + torch.finfo(values.dtype).tiny)
    half = (vectors * values.rsqrt()) @ vectors.T
    if rows is None:
        return RowPreconditioner(half.to(dtype), None)
    # -Λ = half⁻², and half E half = Q diag(θ) Qᵀ turns the inverse of every row into one diagonal scaling.
    columns = half[:, energy.slices[0]]
    theta, Q = torch.linalg.eigh(columns @ columns.T)
    scale = 1.0 / (1.0 + rows.clamp_min(0)[:, None] * theta.clamp_min(0).to(dtype))
    return RowPreconditioner((half @ Q).to(dtype), scale)
