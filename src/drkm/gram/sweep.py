"""Gram matrices of pairwise kernels that are never stored: one sweep over blocks of rows.

A block of rows is sized to stay in the processor's cache, where the exponents, the kernel values and the weights of
one block are formed, used and overwritten. At n = 3000 in float64 this is five times faster than whole n×n matrices.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from drkm.gram.base import MovingGram, Sums
from drkm.kernels import Pairwise

#: entries of one block; two such blocks of float64 fit into a common second-level cache
BLOCK_ENTRIES = {"cpu": 1 << 17, "cuda": 1 << 26}


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
        out = A.new_empty(A.shape)
        for rows, exponent in self._exponents():
            torch.mm(self.kernel.values(exponent), A, out=out[rows])
        return out

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.kernel.diagonal(self.points)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return self.kernel.values(self._left[index] @ self._right)

    def sums(self, A: Tensor) -> Sums:
        """Return KA and the pull on the points."""
        U = self.points
        augmented = torch.cat([U, torch.ones_like(U[:, :1])], dim=1)
        A = A.contiguous()
        At = A.T.contiguous()
        product, WU = A.new_empty(A.shape), A.new_empty(augmented.shape)
        weights = self._buffer()
        for rows, exponent in self._exponents():
            value, slope = self.kernel.jet(exponent, 1)
            torch.mm(value, A, out=product[rows])
            W = torch.mm(A[rows], At, out=weights[: len(value)]).mul_(slope)
            torch.mm(W, augmented, out=WU[rows])
        return Sums(product, *self._chain(WU[:, :-1], WU[:, -1]))

    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the derivatives of KA and of the pull along (dU, dA)."""
        U = self.points
        one = torch.ones_like(U[:, :1])
        inner = (U * dU).sum(dim=1, keepdim=True) if self.kernel.is_isotropic else torch.zeros_like(one)
        # Rows of these two blocks multiply to de_ij = c(⟨du_i, u_j⟩ + ⟨u_i, du_j⟩ - ⟨u_i, du_i⟩ - ⟨u_j, du_j⟩).
        de_left = torch.cat([dU, U, -inner, one], dim=1) * self.kernel.pull_scale
        de_right = torch.cat([U, dU, one, -inner], dim=1).T.contiguous()
        A = A.contiguous()
        At = A.T.contiguous()
        dA_left, dA_right = torch.cat([dA, A], dim=1), torch.cat([A, dA], dim=1).T.contiguous()
        moved, still = torch.cat([U, one], dim=1), torch.cat([dU, one], dim=1)
        d_product = A.new_empty(A.shape)
        dWU, WdU = A.new_empty(moved.shape), A.new_empty(moved.shape)
        for rows, exponent in self._exponents():
            value, slope, bend = self.kernel.jet(exponent, 2)
            de = de_left[rows] @ de_right
            d_product[rows] = value @ dA + (slope * de) @ A
            inner_A = A[rows] @ At
            dW = (dA_left[rows] @ dA_right).mul_(slope).add_(de.mul_(inner_A).mul_(bend))
            dWU[rows] = dW @ moved
            WdU[rows] = inner_A.mul_(slope) @ still
        d_pull = dWU[:, :-1] + WdU[:, :-1]
        if self.kernel.is_isotropic:
            d_pull -= dWU[:, -1:] * U + WdU[:, -1:] * dU
        return d_product, d_pull.mul_(self.kernel.pull_scale)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by ∂e/∂log σ² = -e."""
        total = 0.0
        A = A.contiguous()
        for rows, exponent in self._exponents():
            exponent.clamp_(max=0)
            slope = self.kernel.jet(exponent.clone(), 1)[1]
            total -= float((exponent * slope * (A[rows] @ A.T)).sum())
        return total

    def _chain(self, WU: Tensor, row_sums: Tensor) -> tuple[Tensor, Tensor | None]:
        scale = self.kernel.pull_scale
        if not self.kernel.is_isotropic:
            return scale * WU, None
        curvature = scale * row_sums
        return WU * scale - curvature[:, None] * self.points, curvature

    def _buffer(self) -> Tensor:
        entries = BLOCK_ENTRIES["cuda" if self.points.is_cuda else "cpu"]
        return self._right.new_empty((min(self.n, max(16, entries // self.n)), self.n))

    def _exponents(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows with their exponents, in one buffer that the caller may overwrite."""
        buffer = self._buffer()
        for begin in range(0, self.n, len(buffer)):
            rows = slice(begin, min(begin + len(buffer), self.n))
            yield rows, torch.mm(self._left[rows], self._right, out=buffer[: rows.stop - begin])
