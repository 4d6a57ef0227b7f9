"""Gram matrices ΦΦᵀ of explicit features, applied as two thin products."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.gram.base import Centered, Gram, MovingGram, Sums, center, remove_mean_, rounding_of_mean
from drkm.kernels import Explicit, Kernel
from drkm.machine.elementwise import lengths
from drkm.machine.layout import slices

#: rows whose features are computed at once if they are not kept
ROWS = 4096
#: rows that are summed in the precision of the fit; their sums are added in float64
SUM_ROWS = 1 << 16
#: if the mean is this many times longer than the distances between features, products of features lose two digits
FAR = 10.0


class FeatureGram(MovingGram):
    """ΦΦᵀ with Φ = φ(points), without any n×n matrix. Points that do not move may be in a file."""

    of_features = True

    def __init__(self, kernel: Explicit, points: Tensor | Rows):
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self.phi = kernel.table(points)

    def matmul(self, A: Tensor) -> Tensor:
        """Return Φ(ΦᵀA)."""
        return self.phi @ inner(A, self.phi).T

    def diagonal(self) -> Tensor:
        """Return ‖φ‖² of every point."""
        return self.phi.square().sum(dim=1)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of ΦΦᵀ."""
        return self.phi[index] @ self.phi.T

    def sums(self, A: Tensor) -> Sums:
        """Return KA and the pull, the pullback of A(AᵀΦ)."""
        AtPhi, U = inner(A, self.phi), in_memory(self.points)
        pull = torch.empty_like(U)
        with torch.no_grad():
            for rows in self.kernel.blocks(U):
                pull[rows] = self.kernel.pullback(U[rows])(A[rows] @ AtPhi)
        return Sums(self.phi @ AtPhi.T, pull, None)

    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the derivatives along (dU, dA).

        Forward derivatives are computed as reverse over reverse, which every differentiable map supports.
        """
        phi, U, kernel = self.phi, in_memory(self.points), self.kernel
        AtPhi, own = collectives.total(A.T @ phi), dA.T @ phi
        d_product, d_pull = torch.empty_like(dA), torch.empty_like(U)
        with torch.no_grad():
            for rows in kernel.blocks(U):
                d_phi = torch.func.vjp(kernel.pullback(U[rows]), phi[rows])[1](dU[rows])[0]
                own += A[rows].T @ d_phi
                d_product[rows] = d_phi @ AtPhi.T
            d_AtPhi = collectives.total(own)
            for rows in kernel.blocks(U):
                weights = A[rows] @ AtPhi
                # ⟨φ(u), weights⟩ has a symmetric Hessian.
                bent = torch.func.vjp(lambda u, v=weights: kernel.pullback(u)(v), U[rows])[1](dU[rows])[0]
                d_pull[rows] = bent + kernel.pullback(U[rows])(dA[rows] @ AtPhi + A[rows] @ d_AtPhi)
        return d_product.addmm_(phi, d_AtPhi.T), d_pull

    def centered(self) -> Gram:
        """Return the centred operator, from centred features if the features are far from zero."""
        mean = collectives.mean(self.phi)
        apart = collectives.mean(self.diagonal()) - mean.square().sum()
        return CenteredFeatures(self, mean) if mean.square().sum() > FAR**2 * apart else Centered(self)

    def feature_sums(self, A: Tensor) -> Tensor:
        """Return ΦᵀA over all samples."""
        return inner(A, self.phi).T

    def coded(self, H: Tensor) -> CodedFeatures:
        """Return reduced features that suffice for products with the codes H."""
        sums = self.feature_sums(torch.cat([H, torch.ones_like(H[:, :1])], dim=1))
        # All processes must use the same basis.
        basis = collectives.of_first(torch.linalg.qr(sums.double())[0]).to(H)
        return CodedFeatures(self.phi @ basis, basis, self.diagonal())

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative with respect to log σ²: 0 for kernels without a bandwidth."""
        if not self.kernel.has_bandwidth:
            return 0.0
        with torch.no_grad():
            moved = _summed(self.kernel.width_features, self.points, A)
        return 2 * float((inner(A, self.phi).T * moved).double().sum())


class CenteredFeatures(Centered):
    """(CΦ)(CΦ)ᵀ, with the mean removed from the features before they are multiplied, a few rows at a time.

    If the mean is far longer than the distances between features, products of uncentred features lose all digits of the
    differences.

    Parameters
    ----------
    gram : FeatureGram
        ΦΦᵀ.
    mean : Tensor of shape (D,)
        The mean of the features over all samples.
    """

    def __init__(self, gram: FeatureGram, mean: Tensor):
        super().__init__(gram)
        self.phi, self.mean = gram.phi, mean
        self.blocks = gram.kernel.blocks(gram.points)

    def matmul(self, A: Tensor) -> Tensor:
        """Return CΦ(CΦ)ᵀA."""
        A = center(A)
        own = torch.zeros(A.shape[1], self.phi.shape[1], dtype=torch.float64, device=A.device)
        for rows in self.blocks:
            own += A[rows].T @ self._apart(rows)
        sums, product = collectives.total(own).to(A.dtype), torch.empty_like(A)
        for rows in self.blocks:
            product[rows] = self._apart(rows) @ sums.T
        return self._drop_rounding_(remove_mean_(product), A)

    def diagonal(self) -> Tensor:
        """Return the squared distance of every point from the mean."""
        return torch.linalg.vector_norm(self._apart(slice(None)), dim=1).square()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of (CΦ)(CΦ)ᵀ; entries within rounding of zero are zero, as in columns of products."""
        rows = self._apart(index) @ self._apart(slice(None)).T
        worth = rounding_of_mean(self.n, rows.dtype) ** 2 * collectives.samples(self.n) ** 0.5
        return rows.masked_fill_((lengths(rows, dim=1) <= worth * self._scale)[:, None], 0.0)

    def _apart(self, rows: slice | Tensor) -> Tensor:
        return self.phi[rows] - self.mean


class CodedFeatures(Gram):
    """ΦΦᵀ for products with the codes of a trained model and with ones; needs s numbers per sample instead of samples.

    In a basis B of the sums Φᵀ[H, 1] the features are ΦB, n×s with s ≤ S + 1: for A in the span of H and ones, ΦᵀA is
    B(ΦB)ᵀA and ΦΦᵀA is ΦB(ΦB)ᵀA. For other blocks the products are wrong.

    Parameters
    ----------
    phi : Tensor of shape (n, s)
        ΦB.
    basis : Tensor of shape (D, s)
        B, orthonormal columns.
    lengths : Tensor of shape (n,)
        Diagonal of ΦΦᵀ.
    """

    of_features = True

    def __init__(self, phi: Tensor, basis: Tensor, lengths: Tensor):
        self.phi, self.basis, self.lengths = phi, basis, lengths
        self.n = len(phi)

    def matmul(self, A: Tensor) -> Tensor:
        """Return Φ(ΦᵀA)."""
        return self.phi @ inner(A, self.phi).T

    def diagonal(self) -> Tensor:
        """Return ‖φ‖² of every sample."""
        return self.lengths

    def feature_sums(self, A: Tensor) -> Tensor:
        """Return ΦᵀA over all samples."""
        return self.basis @ inner(A, self.phi).T

    def coded(self, H: Tensor) -> CodedFeatures:
        """Return itself."""
        return self

    def rows(self, index: Tensor) -> Tensor:
        """Raise an error: rows need all features."""
        raise TypeError("gram: the model holds no samples, and no rows of its first Gram matrix")


def inner(A: Tensor, phi: Tensor) -> Tensor:
    """Return AᵀΦ over all samples, which reads Φ in memory order and is twice as fast as ΦᵀA.

    A million terms in float32 would lose the digits that line searches need, hence sums of sums in float64.
    """
    if len(A) <= SUM_ROWS or A.dtype == torch.float64:
        return collectives.total(A.T @ phi)
    own = torch.zeros(A.shape[1], phi.shape[1], dtype=torch.float64, device=A.device)
    for a, part in zip(A.split(SUM_ROWS), phi.split(SUM_ROWS), strict=True):
        own += a.T @ part
    return collectives.total(own).to(A.dtype)


def feature_sums(gram: Gram, kernel: Kernel, points: Tensor | Rows, A: Tensor) -> Tensor:
    """Return ΦᵀA, the sums over samples by which new points are multiplied, from kept features if there are any."""
    kept = gram.feature_sums(A)
    if kept is not None:
        return kept
    with torch.no_grad():
        return _summed(kernel.features, points, A)


def _summed(features: Callable[[Tensor], Tensor], points: Tensor | Rows, A: Tensor) -> Tensor:
    blocks = slices(len(points), ROWS)
    return collectives.total(sum((features(points[rows]).T @ A[rows] for rows in blocks), start=A.new_zeros(())))
