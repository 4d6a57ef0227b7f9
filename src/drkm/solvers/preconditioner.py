"""An approximate inverse of the Hessian, computed from the results of a gradient evaluation.

At a tangent vector Z the Hessian of the energy on the manifold is Z(-Λ) - [K_1Z_1, …, K_LZ_L] + …, where Λ holds the
multipliers. Away from the leading eigenvectors of the K_l, which the codes already span, the kernel matrices add
little, and the rest acts on each row separately: row i is multiplied by -Λ + d_i E, where d_i is the weight of the
sample's own code in the pull of the layer above and E selects the columns of the layer pulled on. Its inverse costs a
few thin products.

A tangent vector is HΩ + Z⊥ with a skew Ω, and applying the inverse of M = -Λ by rows leaves the tangent space in the
part HΩ: for a rotation between the directions i and j it would use the mean of 1/m_i and 1/m_j, although the curvature
is (m_i + m_j)/2. With layers of unequal weights these differ by orders of magnitude, and L-BFGS takes up to ten times
as many iterations. In that case HΩ is divided by its own curvature. With equal weights neither way is better, and the
rows are enough. A rotation inside a layer is determined only by the layer above, and only if that layer has a kernel of
explicit features, which is not invariant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.state import Codes, Square
from drkm.validation import parts

#: eigenvalues of -Λ below this fraction of their mean carry no reliable curvature
FLOOR = 0.1
#: the curvature of a rotation inside a layer is at least this fraction of the layer's own curvature
LEAST_HELD = 1e-3


Basis = Annotated[Tensor, lambda of: parts.tensor(of.total, of.total, dtype=of.dtype)]
Curvatures = Annotated[Tensor, lambda of: parts.tensor(of.total, dtype=torch.float64)]


@dataclass(frozen=True)
class RowPreconditioner:
    """The map Z ↦ ((ZB) ∘ scale)Bᵀ, a scale of None meaning ones; for unequal weights only on the part orthogonal to H.

    In the other part, HΩ, rotations between layers, in the basis `axes`, are divided by means of `curvatures`, and
    rotations inside a layer are multiplied by `within`, which has zeros between layers.
    """

    basis: Basis
    scale: Codes | None
    axes: Square | None = None
    curvatures: Curvatures | None = None
    within: Square | None = None

    def apply(self, Z: Tensor, H: Tensor) -> Tensor:
        """Return the preconditioned block, for a tangent vector at H."""
        if self.axes is None or self.curvatures is None or self.within is None:
            return self._rows(Z)
        inside = stiefel.gram(H, Z)
        outside = self._rows(Z - H @ inside.to(Z.dtype))
        skew, is_between = inside - inside.T, self.within == 0
        turn = self.axes.T @ (skew * is_between) @ self.axes / (self.curvatures[:, None] + self.curvatures)
        turn = (self.axes @ turn @ self.axes.T) * is_between + self.within * skew
        return outside + H @ (turn - stiefel.gram(H, outside)).to(Z.dtype)

    def _rows(self, Z: Tensor) -> Tensor:
        coordinates = Z @ self.basis
        return (coordinates if self.scale is None else coordinates * self.scale) @ self.basis.T


def row_preconditioner(
    energy: Energy, multipliers: Tensor, curvature: Sequence[Tensor | None], dtype: torch.dtype
) -> RowPreconditioner:
    """Return the map Z ↦ Z(-Λ + d_i E)⁻¹, made positive definite."""
    M = -multipliers
    # If more than one layer is pulled on, only the lowest has a weight per row; the others use their mean.
    rows = curvature[0] if curvature else None
    for block, weight in zip(energy.slices[1:], curvature[1:], strict=False):
        if weight is not None:
            M[block, block].diagonal().add_(collectives.mean(weight).clamp_min(0).double())
    is_unequal = len(set(energy.eta)) > 1
    own = _scales(energy, M) if is_unequal else torch.ones_like(M[0])
    values, vectors = torch.linalg.eigh(own[:, None] * M * own)
    values = values.abs()
    values = values.clamp_min(FLOOR * values.mean().item() + torch.finfo(values.dtype).tiny)
    half = own[:, None] * ((vectors * values.rsqrt()) @ vectors.T)
    turns = {}
    if is_unequal:
        whole = stiefel.symmetric((vectors * values) @ vectors.T / own[:, None] / own)
        if rows is not None:
            whole[energy.slices[0], energy.slices[0]].diagonal().add_(collectives.mean(rows).clamp_min(0).double())
        turns = _turns(energy, whole, curvature)
    if rows is None:
        return RowPreconditioner(half.to(dtype), None, **turns)
    # M⁻¹ = half halfᵀ, and halfᵀ E half = Q diag(θ) Qᵀ turns the inverse of every row into one diagonal scaling.
    pulled = half[energy.slices[0]]
    theta, Q = torch.linalg.eigh(pulled.T @ pulled)
    scale = 1.0 / (1.0 + rows.clamp_min(0)[:, None] * theta.clamp_min(0).to(dtype))
    return RowPreconditioner((half @ Q).to(dtype), scale, **turns)


def _scales(energy: Energy, M: Tensor) -> Tensor:
    """Return factors that bring all layers to one scale, so that each layer has a floor relative to its own weight."""
    sizes = [M[block, block].diagonal().abs().mean() for block in energy.slices]
    least = torch.finfo(M.dtype).eps * float(max(sizes)) + torch.finfo(M.dtype).tiny
    return torch.stack(sizes).clamp_min(least).rsqrt().repeat_interleave(torch.tensor(energy.sizes, device=M.device))


def _turns(energy: Energy, M: Tensor, curvature: Sequence[Tensor | None]) -> dict[str, Tensor]:
    """Return the factors for rotations between and inside layers, for a positive definite M."""
    values, vectors = torch.linalg.eigh(M)
    within: list[Tensor] = []
    for block, above, weight in zip_longest(energy.slices, energy.kernels[1:], curvature):
        held = M[block, block].diagonal().mean()
        if weight is not None and above is not None and above.is_explicit:
            held = collectives.mean(weight).double().clamp_min(LEAST_HELD * held.item())
        within.append((0.5 / held).expand(energy.sizes[len(within)], energy.sizes[len(within)]))
    # In the layout that a checkpoint restores; otherwise the last bits would differ after it.
    return {"axes": vectors.contiguous(), "curvatures": values, "within": torch.block_diag(*within)}
