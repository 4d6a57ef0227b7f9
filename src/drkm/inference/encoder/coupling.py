"""The coupling of a point's codes in two neighbouring layers through the training codes: Σ_j k(u, u_j) ⟨h, a_j⟩.

u is the point's code in the lower layer, h in the upper one, u_j and a_j those of training sample j. The encoder needs
this sum with its first and second derivatives, for a batch of points at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import NamedTuple

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram.sweep import jets
from drkm.kernels import Explicit, FourierFeatures, Kernel, Pairwise

#: samples whose features are held at once
ROWS = 4096


class Expansion(NamedTuple):
    """c(u, h) to second order at a batch of points; c is linear in h.

    own : ∂c/∂h (m×t)
    below : ∂c/∂u (m×s)
    second : ∂²c/∂u² (m×s×s)
    mixed : ∂²c/∂u∂h (m×s×t)
    """

    own: Tensor
    below: Tensor
    second: Tensor
    mixed: Tensor


class Coupling(ABC):
    """c(u, h) = Σ_j k(u, u_j) ⟨h - ā, a_j - ā⟩ - ⟨h, m⟩, where ā and m vanish unless features are centred."""

    def __init__(self, kernel: Kernel, U: Tensor, A: Tensor, center: bool):
        self.kernel = kernel
        self.U = U.contiguous()
        self.shift = collectives.mean(A) if center else torch.zeros_like(A[0])
        self.A = (A - self.shift).contiguous()
        self.mean = torch.zeros_like(A[0])

    def value(self, u: Tensor, h: Tensor) -> Tensor:
        """Return c for every point."""
        return self.value_from(self.gradient_own(u), h)

    def value_from(self, own: Tensor, h: Tensor) -> Tensor:
        """Return c for every point from ∂c/∂h, which does not depend on h."""
        return (own * (h - self.shift)).sum(dim=1) - (self.mean * self.shift).sum()

    @abstractmethod
    def gradient_own(self, u: Tensor) -> Tensor:
        """Return ∂c/∂h, which depends on u alone."""

    @abstractmethod
    def gradient(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂c/∂u and ∂c/∂h."""

    @abstractmethod
    def expand(self, u: Tensor, h: Tensor) -> Expansion:
        """Return all first and second derivatives."""


class PairwiseCoupling(Coupling):
    """Closed forms for kernels f(e) of an exponent e.

    Kernel values of a few points with all samples are formed, used for every sum and overwritten while they are in the
    processor's cache; otherwise encoding would spend more time moving them than on the first layer's product.
    """

    kernel: Pairwise

    def __init__(self, kernel: Pairwise, U: Tensor, A: Tensor, center: bool):
        super().__init__(kernel, U, A, center)
        self.scale = kernel.pull_scale
        self.isotropic = float(kernel.is_isotropic)
        self.right = kernel.factors(self.U)[1].T.contiguous()
        self.At = self.A.T.contiguous()
        self.augmented = torch.cat([self.U, torch.ones_like(self.U[:, :1])], dim=1)
        # Columns that slopes and curvatures are multiplied by: a and u⊗a, (u, 1) and the upper half of u⊗u.
        UA = (self.U[:, :, None] * self.A[:, None, :]).flatten(1)
        self.sloped = torch.cat([self.A, UA], dim=1)
        self.upper = torch.triu_indices(self.U.shape[1], self.U.shape[1], device=U.device)
        self.bent = torch.cat([self.augmented, self.U[:, self.upper[0]] * self.U[:, self.upper[1]]], dim=1)
        if center:
            self.mean = self.gradient_own(self.U).mean(dim=0)

    def _jets(self, u: Tensor, order: int) -> Iterator[tuple[slice, tuple[Tensor, ...], list[Tensor]]]:
        """Yield blocks of rows with their jets, and one block of memory for weights."""
        return jets(self.kernel, self.kernel.factors(u)[0], self.right, order, spare=1)

    def gradient_own(self, u: Tensor) -> Tensor:
        """Return Σ_j k(u, u_j) a_j."""
        own = u.new_empty(len(u), self.A.shape[1])
        for rows, (value,), _ in self._jets(u, 0):
            torch.mm(value, self.A, out=own[rows])
        return own - self.mean

    def gradient(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return ∂c/∂u and ∂c/∂h."""
        g = h - self.shift
        own, sums = torch.empty_like(g), u.new_empty(len(u), self.augmented.shape[1])
        for rows, (value, slope), (weights,) in self._jets(u, 1):
            torch.mm(value, self.A, out=own[rows])
            torch.mm(torch.mm(g[rows], self.At, out=weights).mul_(slope), self.augmented, out=sums[rows])
        return self._below(u, sums), own - self.mean

    def expand(self, u: Tensor, h: Tensor) -> Expansion:
        """Return all first and second derivatives, in one sweep."""
        g, (m, s), t = h - self.shift, u.shape, self.A.shape[1]
        own, sums = torch.empty_like(g), u.new_empty(m, s + 1)
        sloped, bent = u.new_empty(m, self.sloped.shape[1]), u.new_empty(m, self.bent.shape[1])
        for rows, (value, slope, bend), (weights,) in self._jets(u, 2):
            inner = torch.mm(g[rows], self.At, out=weights)
            torch.mm(slope, self.sloped, out=sloped[rows])
            own[rows] = sloped[rows, :t] if slope is value else value @ self.A
            if bend is slope:
                torch.mm(inner.mul_(slope), self.bent, out=bent[rows])
                sums[rows] = bent[rows, : s + 1]
            else:
                torch.mm(slope.mul_(inner), self.augmented, out=sums[rows])
                torch.mm(inner.mul_(bend), self.bent, out=bent[rows])
        mixed = sloped[:, t:].view(m, s, t) - self.isotropic * u[:, :, None] * sloped[:, None, :t]
        second = self.scale**2 * self._second(u, bent)
        second.diagonal(dim1=1, dim2=2).sub_(self.scale * self.isotropic * sums[:, -1:])
        return Expansion(own - self.mean, self._below(u, sums), second, self.scale * mixed)

    def _below(self, u: Tensor, sums: Tensor) -> Tensor:
        """Return ∂c/∂u from the sums of sloped weights with (u_j, 1)."""
        return self.scale * (sums[:, :-1] - self.isotropic * sums[:, -1:] * u)

    def _second(self, u: Tensor, bent: Tensor) -> Tensor:
        """Return Σ_j w_j (u_j - u)(u_j - u)ᵀ, or without -u, from the sums of weights with (u_j, 1, u_j⊗u_j)."""
        m, s = u.shape
        second = u.new_empty(m, s, s)
        second[:, self.upper[0], self.upper[1]] = bent[:, s + 1 :]
        second[:, self.upper[1], self.upper[0]] = bent[:, s + 1 :]
        if not self.isotropic:
            return second
        cross = u[:, :, None] * bent[:, None, :s]
        return second - cross - cross.mT + bent[:, s, None, None] * u[:, :, None] * u[:, None, :]


class ExplicitCoupling(Coupling):
    """Kernels of explicit features, φ(u)·φ(u_j): the sum over samples is computed once, derivatives by autograd."""

    kernel: Explicit

    def __init__(self, kernel: Explicit, U: Tensor, A: Tensor, center: bool):
        super().__init__(kernel, U, A, center)
        parts = range(0, len(U), ROWS)
        # Features of all samples at once may be larger than everything else.
        with torch.no_grad():
            features = ((kernel.features(self.U[i : i + ROWS]), self.A[i : i + ROWS]) for i in parts)
            sums = [(phi.T @ A, phi.sum(dim=0)) for phi, A in features]
        zero = A.new_zeros(())
        self.sum = collectives.total(sum((part for part, _ in sums), start=zero))
        if center:
            feature_sum = collectives.total(sum((part for _, part in sums), start=zero))
            self.mean = feature_sum @ self.sum / collectives.samples(len(U))

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

    def expand(self, u: Tensor, h: Tensor) -> Expansion:
        """Return all first and second derivatives."""

        def weighted(u: Tensor, h: Tensor) -> Tensor:
            return (self._one(u) * h).sum()

        with torch.no_grad():
            second = torch.func.vmap(torch.func.jacrev(torch.func.jacrev(weighted)))(u, h - self.shift)
            mixed = torch.func.vmap(torch.func.jacrev(self._one))(u)
        below, own = self.gradient(u, h)
        return Expansion(own, below, second, mixed.mT)


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

    def expand(self, u: Tensor, h: Tensor) -> Expansion:
        """Return all first and second derivatives, from one set of cosines and sines."""
        m, s = u.shape
        with torch.no_grad():
            phi = self.kernel.features(u)
        cosine, sine = phi.chunk(2, dim=1)
        weights = (h - self.shift) @ self.sum.T
        on_cosine, on_sine = weights.chunk(2, dim=1)
        below = (cosine * on_sine - sine * on_cosine) @ self.kernel.scaled.T
        second = -((cosine * on_cosine + sine * on_sine) @ self.WW).view(m, s, s)
        mixed = (cosine @ self.W_on_sine - sine @ self.W_on_cosine).view(m, s, -1)
        return Expansion(phi @ self.sum - self.mean, below, second, mixed)


def couplings(kernels: Sequence[Kernel], blocks: Sequence[Tensor], center: bool) -> list[Coupling]:
    """Return the coupling of every deep layer with the one below it: one kernel and one block of codes per layer."""
    layers = zip(kernels[1:], blocks, blocks[1:], strict=False)
    return [coupling(kernel, below, own, center) for kernel, below, own in layers]


@singledispatch
def coupling(kernel: Kernel, below: Tensor, own: Tensor, center: bool) -> Coupling:
    """Return the coupling of a layer with the one below it, according to the family of its kernel."""
    raise TypeError(f"kernel: {type(kernel).__name__} cannot be used above the first layer")


coupling.register(Pairwise, PairwiseCoupling)
coupling.register(Explicit, ExplicitCoupling)
coupling.register(FourierFeatures, FourierCoupling)
