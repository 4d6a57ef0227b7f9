"""Gram matrices of pairwise kernels that are never stored, but swept in blocks of rows.

A block of rows is sized to stay in the processor's cache, where the exponents, the kernel values and the weights of one
block are formed, used and overwritten. At n = 3000 in float64 this is five times faster than with whole n×n matrices.
All blocks reuse the same memory: fresh pages would cost several times the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from drkm.gram.base import MovingGram, Sums
from drkm.kernels import Pairwise
from drkm.kernels.base import BLOCK_ENTRIES
from drkm.machine.devices import size_on
from drkm.machine.layout import slices


class SweptGram(MovingGram):
    """Gram matrix of a pairwise kernel at the rows of `points`, recomputed block by block at every product."""

    def __init__(self, kernel: Pairwise, points: Tensor):
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self._left, right = kernel.factors(points)
        self._right = right.T.contiguous()

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        out = A.new_zeros(A.shape)
        for _, right, (_, B) in self._around(A.contiguous()):
            for rows, (value,), _ in self._jets(right, 0):
                out[rows].addmm_(value, B)
        return out

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.kernel.diagonal(self.points)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        parts = {columns.start: self.kernel.values(self._left[index] @ right) for columns, right, _ in self._around()}
        return torch.cat([parts[start] for start in sorted(parts)], dim=1)

    def sums(self, A: Tensor) -> Sums:
        """Return KA and the pull P on the points: for k = f(e), e = -‖x-y‖²/(2σ²),

            P = (W - diag(W·1)) U/σ²,    W = f'(E) ∘ (AAᵀ),

        where f' = f for the RBF kernel, so that W = K ∘ (AAᵀ). For e = γ x·y + c it is P = γ WU.
        """
        A = A.contiguous()
        product, WU = A.new_zeros(A.shape), A.new_zeros(self.n, self.points.shape[1] + 1)
        for _, right, (V, B) in self._around(A):
            augmented, Bt = torch.cat([V, torch.ones_like(V[:, :1])], dim=1), B.T.contiguous()
            for rows, (value, slope), (weights,) in self._jets(right, 1, spare=1):
                product[rows].addmm_(value, B)
                W = torch.mm(A[rows], Bt, out=weights).mul_(slope)
                WU[rows].addmm_(W, augmented)
        return Sums(product, *self._chain(WU[:, :-1], WU[:, -1]))

    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the derivatives of KA and of the pull along (dU, dA): for k = f(e), e = -‖x-y‖²/(2σ²),

            d(KA) = K dA + (f'(E) ∘ dE) A,    dP = ((dW - diag(dW·1)) U + (W - diag(W·1)) dU)/σ²,
            dW = f''(E) ∘ dE ∘ (AAᵀ) + f'(E) ∘ (dA Aᵀ + A dAᵀ),

        with W of `sums`. For e = γ x·y + c the diagonals are left out, and γ stands for 1/σ².
        """
        U, A = self.points, A.contiguous()
        # Rows of these two blocks multiply to de_ij = c(⟨du_i, u_j⟩ + ⟨u_i, du_j⟩ - ⟨u_i, du_i⟩ - ⟨u_j, du_j⟩).
        de_left = torch.cat([dU, U, -self._inner(U, dU), torch.ones_like(U[:, :1])], dim=1) * self.kernel.pull_scale
        dA_left = torch.cat([dA, A], dim=1)
        d_product = A.new_zeros(A.shape)
        dWU, WdU = (A.new_zeros(self.n, U.shape[1] + 1) for _ in range(2))
        for _, right, (V, B, dV, dB) in self._around(A, dU, dA):
            one = torch.ones_like(V[:, :1])
            de_right = torch.cat([V, dV, one, -self._inner(V, dV)], dim=1).T.contiguous()
            Bt, dA_right = B.T.contiguous(), torch.cat([B, dB], dim=1).T.contiguous()
            moved, still = torch.cat([V, one], dim=1), torch.cat([dV, one], dim=1)
            for rows, (value, slope, bend), (first, second, third) in self._jets(right, 2, spare=3):
                de = torch.mm(de_left[rows], de_right, out=first)
                d_product[rows].addmm_(value, dB).addmm_(torch.mul(slope, de, out=second), B)
                inner_A = torch.mm(A[rows], Bt, out=third)
                dW = torch.mm(dA_left[rows], dA_right, out=second).mul_(slope).add_(de.mul_(inner_A).mul_(bend))
                dWU[rows].addmm_(dW, moved)
                WdU[rows].addmm_(inner_A.mul_(slope), still)
        d_pull = dWU[:, :-1] + WdU[:, :-1]
        if self.kernel.is_isotropic:
            d_pull -= dWU[:, -1:] * U + WdU[:, -1:] * dU
        return d_product, d_pull.mul_(self.kernel.pull_scale)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by ∂e/∂log σ² = -e."""
        A = A.contiguous()
        return sum(parameter_sum(self.kernel, self._left, right, A, B) for _, right, (_, B) in self._around(A))

    def _around(self, *blocks: Tensor) -> Iterator[tuple[slice, Tensor, tuple[Tensor, ...]]]:
        """Yield blocks of the other points: their columns, right factors, and the points with rows of `blocks`."""
        yield slice(0, self.n), self._right, (self.points, *blocks)

    def _jets(
        self, right: Tensor, order: int, spare: int = 0
    ) -> Iterator[tuple[slice, tuple[Tensor, ...], list[Tensor]]]:
        return jets(self.kernel, self._left, right, order, spare)

    def _inner(self, U: Tensor, dU: Tensor) -> Tensor:
        """Return ⟨u, du⟩ of every point as a column, for kernels that depend on lengths."""
        return (U * dU).sum(dim=1, keepdim=True) if self.kernel.is_isotropic else torch.zeros_like(U[:, :1])

    def _chain(self, WU: Tensor, row_sums: Tensor) -> tuple[Tensor, Tensor | None]:
        scale = self.kernel.pull_scale
        if not self.kernel.is_isotropic:
            return scale * WU, None
        curvature = scale * row_sums
        return WU * scale - curvature[:, None] * self.points, curvature


def blocks(m: int, n: int, like: Tensor) -> list[slice]:
    """Return slices of m rows such that a block of n columns stays in the processor's cache."""
    rows = max(16, size_on(like.device, BLOCK_ENTRIES) // max(n, 1))
    return slices(m, rows)


def jets(
    kernel: Pairwise, left: Tensor, right: Tensor, order: int, spare: int = 0
) -> Iterator[tuple[slice, tuple[Tensor, ...], list[Tensor]]]:
    """Yield blocks of rows with the jet of their exponents `left` @ `right`, and `spare` blocks of scratch memory.

    The next block overwrites all of this memory, and the caller may overwrite it too.
    """
    n = right.shape[1]
    parts = blocks(len(left), n, left)
    memory = [left.new_empty(parts[0].stop, n) for _ in range(1 + kernel.rooms + spare)] if parts else []
    for rows in parts:
        exponent, *others = (block[: rows.stop - rows.start] for block in memory)
        torch.mm(left[rows], right, out=exponent)
        yield rows, kernel.jet(exponent, order, others[: kernel.rooms]), others[kernel.rooms :]


def parameter_sum(kernel: Pairwise, left: Tensor, right: Tensor, A: Tensor, B: Tensor) -> float:
    """Return the derivative of tr(AᵀKB) with respect to log σ², by ∂e/∂log σ² = -e, for K with exponents LR."""
    total = 0.0
    for rows, (_, slope), (weights, exponent) in jets(kernel, left, right, 1, spare=2):
        torch.mm(left[rows], right, out=exponent).clamp_(max=0)
        total -= float(torch.mm(A[rows], B.T, out=weights).mul_(slope).mul_(exponent).sum())
    return total
