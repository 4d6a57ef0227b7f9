"""How the codes of one point in two neighbouring layers meet the training codes: Σ_j k(u, u_j) ⟨h, a_j⟩.

u is the point's code in the lower layer, h in the upper one, u_j and a_j those of training sample j. The encoder needs
this sum with its first and second derivatives, for a batch of points at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from drkm import reduction
from drkm.energy import Energy
from drkm.kernels import Explicit, FourierFeatures, Kernel, Pairwise

#: samples whose features are held at once
ROWS = 4096


class Coupling(ABC):
    """c(u, h) = Σ_j k(u, u_j) ⟨h - ā, a_j - ā⟩ - ⟨h, m⟩, where ā and m vanish unless features are centred."""

    def __init__(self, kernel: Kernel, U: Tensor, A: Tensor, center: bool):
        self.kernel = kernel
        self.U = U.contiguous()
        self.shift = reduction.mean(A) if center else torch.zeros_like(A[0])
        self.A = (A - self.shift).contiguous()
        self.mean = torch.zeros_like(A[0])

    def value(self, u: Tensor, h: Tensor) -> Tensor:
        """Return c for every point."""
        return (self.gradient_own(u) * (h - self.shift)).sum(dim=1) - (self.mean * self.shift).sum()

    @abstractmethod
    def gradient_own(self, u: Tensor) -> Tensor:
        """Return ∂c/∂h, which depends on u alone."""

    @abstractmethod
    def gradient(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂c/∂u and ∂c/∂h."""

    @abstractmethod
    def hessian(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂²c/∂u² (m×s×s) and ∂²c/∂u∂h (m×s×t); c is linear in h."""


class PairwiseCoupling(Coupling):
    """Closed forms for kernels f(e) of an exponent e."""

    kernel: Pairwise

    def __init__(self, kernel: Pairwise, U: Tensor, A: Tensor, center: bool):
        super().__init__(kernel, U, A, center)
        self.scale = kernel.pull_scale
        self.isotropic = float(kernel.is_isotropic)
        self.right = kernel.factors(self.U)[1].T.contiguous()
        n = len(U)
        self.UU = (self.U[:, :, None] * self.U[:, None, :]).reshape(n, -1)
        self.UA = (self.U[:, :, None] * self.A[:, None, :]).reshape(n, -1)
        self.augmented = torch.cat([self.U, torch.ones_like(self.U[:, :1])], dim=1)
        if center:
            self.mean = self.gradient_own(self.U).mean(dim=0)

    def _jet(self, u: Tensor, order: int) -> tuple[Tensor, ...]:
        return self.kernel.jet(self.kernel.factors(u)[0] @ self.right, order)

    def gradient_own(self, u: Tensor) -> Tensor:
        """Return Σ_j k(u, u_j) a_j."""
        return self._jet(u, 0)[0] @ self.A - self.mean

    def gradient(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂c/∂u and ∂c/∂h."""
        value, slope = self._jet(u, 1)
        weights = slope * ((h - self.shift) @ self.A.T)
        sums = weights @ self.augmented
        d_u = self.scale * (sums[:, :-1] - self.isotropic * sums[:, -1:] * u)
        return d_u, value @ self.A - self.mean

    def hessian(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂²c/∂u² and ∂²c/∂u∂h."""
        m, s = u.shape
        _, slope, bend = self._jet(u, 2)
        inner = (h - self.shift) @ self.A.T
        bent = bend * inner
        sums = bent @ self.augmented
        cross = self.isotropic * u[:, :, None] * sums[:, None, :-1]
        second = (bent @ self.UU).view(m, s, s) - cross - cross.mT
        second = second + self.isotropic * sums[:, -1, None, None] * u[:, :, None] * u[:, None, :]
        total = self.isotropic * (slope * inner).sum(dim=1)
        eye = torch.eye(s, dtype=u.dtype, device=u.device)
        sloped = (slope @ self.A)[:, None, :]
        mixed = (slope @ self.UA).view(m, s, self.A.shape[1]) - self.isotropic * u[:, :, None] * sloped
        return self.scale**2 * second - self.scale * total[:, None, None] * eye, self.scale * mixed


class ExplicitCoupling(Coupling):
    """Kernels of explicit features, φ(u)·φ(u_j): the sum over samples is done once, derivatives are automatic."""

    kernel: Explicit

    def __init__(self, kernel: Explicit, U: Tensor, A: Tensor, center: bool):
        super().__init__(kernel, U, A, center)
        parts = range(0, len(U), ROWS)
        # Features of all samples at once may be larger than everything else.
        with torch.no_grad():
            features = ((kernel.features(self.U[i : i + ROWS]), self.A[i : i + ROWS]) for i in parts)
            sums = [(phi.T @ A, phi.sum(dim=0)) for phi, A in features]
        self.sum: Tensor = reduction.total(sum(part for part, _ in sums))  # type: ignore[arg-type]
        if center:
            feature_sum = reduction.total(sum(part for _, part in sums))  # type: ignore[arg-type]
            self.mean = feature_sum @ self.sum / reduction.samples(len(U))

    def _one(self, u: Tensor) -> Tensor:
        return self.kernel.features(u[None])[0] @ self.sum

    def gradient_own(self, u: Tensor) -> Tensor:
        """Return (Σ_j a_j φ(u_j)ᵀ) φ(u)."""
        with torch.no_grad():
            return self.kernel.features(u) @ self.sum - self.mean

    def gradient(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂c/∂u and ∂c/∂h."""
        with torch.no_grad():
            d_u = self.kernel.pullback(u)((h - self.shift) @ self.sum.T)
        return d_u, self.gradient_own(u)

    def hessian(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂²c/∂u² and ∂²c/∂u∂h."""

        def weighted(u: Tensor, h: Tensor) -> Tensor:
            return (self._one(u) * h).sum()

        with torch.no_grad():
            second = torch.func.vmap(torch.func.jacrev(torch.func.jacrev(weighted)))(u, h - self.shift)
            mixed = torch.func.vmap(torch.func.jacrev(self._one))(u)
        return second, mixed.mT


class FourierCoupling(ExplicitCoupling):
    """Closed forms for Fourier features: the second derivative of a cosine is minus itself."""

    kernel: FourierFeatures

    def __init__(self, kernel: FourierFeatures, U: Tensor, A: Tensor, center: bool):
        super().__init__(kernel, U, A, center)
        W = kernel.scaled
        on_cosine, on_sine = self.sum.chunk(2)
        self.WW = (W.T[:, :, None] * W.T[:, None, :]).flatten(1)
        self.W_on_cosine = (W.T[:, :, None] * on_cosine[:, None, :]).flatten(1)
        self.W_on_sine = (W.T[:, :, None] * on_sine[:, None, :]).flatten(1)

    def hessian(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂²c/∂u² and ∂²c/∂u∂h."""
        m, s = u.shape
        phi = self.kernel.features(u)
        cosine, sine = phi.chunk(2, dim=1)
        on_cosine, on_sine = (phi * ((h - self.shift) @ self.sum.T)).chunk(2, dim=1)
        second = -((on_cosine + on_sine) @ self.WW).view(m, s, s)
        mixed = (cosine @ self.W_on_sine - sine @ self.W_on_cosine).view(m, s, -1)
        return second, mixed


def couplings(energy: Energy, H: Tensor) -> list[Coupling]:
    """Return the coupling of every deep layer with the one below it."""
    blocks = energy.split(H)
    out: list[Coupling] = []
    for layer, kernel in enumerate(energy.kernels[1:], start=1):
        if isinstance(kernel, Pairwise):
            out.append(PairwiseCoupling(kernel, blocks[layer - 1], blocks[layer], energy.center))
        elif isinstance(kernel, FourierFeatures):
            out.append(FourierCoupling(kernel, blocks[layer - 1], blocks[layer], energy.center))
        else:
            assert isinstance(kernel, Explicit)
            out.append(ExplicitCoupling(kernel, blocks[layer - 1], blocks[layer], energy.center))
    return out
