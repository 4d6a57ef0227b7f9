"""Gram matrices of Fourier features at moving points: two sweeps over blocks of rows, without storing n×F features.

Computing cosines and sines costs about as much as reading them from memory, so that each sweep computes them again, in
blocks that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram.base import MovingGram, Sums
from drkm.gram.sweep import blocks
from drkm.kernels import FourierFeatures


class FourierGram(MovingGram):
    """ΦΦᵀ for φ(u) = [cos(Ωᵀu), sin(Ωᵀu)]/√F at the rows of `points`; products cost O(n·F)."""

    of_features = True

    def __init__(self, kernel: FourierFeatures, points: Tensor):
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self._frequencies = kernel.scaled
        #: the weight of a pair of features in ΦΦᵀ
        self._weight = kernel.weight**2

    def matmul(self, A: Tensor) -> Tensor:
        """Return Φ(ΦᵀA)."""
        on_cosine, on_sine = self._sums_over_samples(A)
        out = A.new_empty(A.shape)
        for rows, phase in self._phases():
            out[rows] = phase.cos() @ on_cosine + phase.sin() @ on_sine
        return out

    def diagonal(self) -> Tensor:
        """Return ones: cos² + sin² = 1."""
        return self.kernel.diagonal(self.points)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of ΦΦᵀ."""
        chosen = self.points[index] @ self._frequencies
        cosine, sine = chosen.cos() * self._weight, chosen.sin() * self._weight
        out = self.points.new_empty(len(index), self.n)
        for rows, phase in self._phases():
            out[:, rows] = cosine @ phase.cos().T + sine @ phase.sin().T
        return out

    def sums(self, A: Tensor) -> Sums:
        """Return KA and the pull on the points."""
        on_cosine, on_sine = self._sums_over_samples(A)
        product, pull = A.new_empty(A.shape), torch.empty_like(self.points)
        for rows, phase in self._phases():
            cosine, sine = phase.cos(), phase.sin()
            product[rows] = cosine @ on_cosine + sine @ on_sine
            turned = cosine.mul_(A[rows] @ on_sine.T).sub_(sine.mul_(A[rows] @ on_cosine.T))
            pull[rows] = turned @ self._frequencies.T
        # Exact for the RBF, whose derivative is its value; close enough for the preconditioner with other kernels.
        curvature = (A * product).sum(dim=1) / self.kernel.bandwidth
        return Sums(product, pull, curvature)

    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the derivatives of KA and of the pull along (dU, dA)."""
        on_cosine, on_sine = self._sums_over_samples(A)
        d_cosine, d_sine = self._sums_over_samples(dA, A, dU)
        d_product, d_pull = A.new_empty(A.shape), torch.empty_like(self.points)
        for rows, phase in self._phases():
            cosine, sine, turn = phase.cos(), phase.sin(), dU[rows] @ self._frequencies
            d_product[rows] = cosine @ d_cosine + sine @ d_sine + (cosine * turn) @ on_sine - (sine * turn) @ on_cosine
            a, da = A[rows], dA[rows]
            moved = cosine * (da @ on_sine.T + a @ d_sine.T - turn * (a @ on_cosine.T))
            moved -= sine * (da @ on_cosine.T + a @ d_cosine.T + turn * (a @ on_sine.T))
            d_pull[rows] = moved @ self._frequencies.T
        return d_product, d_pull

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ²; that of a phase is minus half the phase."""
        on_cosine, on_sine = self._sums_over_samples(A)
        d_cosine, d_sine = self._sums_over_samples(torch.zeros_like(A), A, -0.5 * self.points)
        inner = (on_cosine * d_cosine).double().sum() + (on_sine * d_sine).double().sum()
        return 2 * float(inner) / self._weight

    def _sums_over_samples(
        self, A: Tensor, moving: Tensor | None = None, dU: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the F×t weighted sums of cosines and of sines with A, plus their derivative along dU if it is given.

        Blocks are summed in float64: a million terms in float32 would lose the digits that line searches need.
        """
        shape = (self._frequencies.shape[1], A.shape[1])
        on_cosine = torch.zeros(shape, dtype=torch.float64, device=A.device)
        on_sine = torch.zeros_like(on_cosine)
        for rows, phase in self._phases():
            cosine, sine = phase.cos().T, phase.sin().T
            on_cosine += cosine @ A[rows]
            on_sine += sine @ A[rows]
            if moving is not None and dU is not None:
                turn = (dU[rows] @ self._frequencies).T
                on_cosine -= (sine * turn) @ moving[rows]
                on_sine += (cosine * turn) @ moving[rows]
        on_cosine, on_sine = collectives.total(self._weight * torch.stack([on_cosine, on_sine])).to(A.dtype)
        return on_cosine, on_sine

    def _phases(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows and their phases Ωᵀu."""
        for rows in blocks(self.n, self._frequencies.shape[1], self.points):
            yield rows, self.points[rows] @ self._frequencies
