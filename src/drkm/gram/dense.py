"""The plain strategy: the Gram matrix of layer 1 is stored, those of deep layers are swept."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.gram.base import Gram, MovingGram, Strategy, register
from drkm.gram.cost import Cost, Workload, common, first_of_features, pair_flops
from drkm.gram.features import FeatureGram
from drkm.gram.fourier_gram import FourierGram
from drkm.gram.sweep import SweptGram
from drkm.kernels import Explicit, FourierFeatures, Kernel, Pairwise


class StoredGram(Gram):
    """A Gram matrix held in memory."""

    def __init__(self, K: Tensor):
        self.K = K
        self.n = len(K)

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        if self.K.is_cuda:
            return self.K @ A
        # K is symmetric, and a BLAS multiplies a few columns by a wide matrix twice as fast from the left.
        return (A.T @ self.K).T.contiguous()

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.K.diagonal()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return self.K[index]


class StoredPairs(StoredGram):
    """The Gram matrix of a pairwise kernel, held in memory together with its points."""

    def __init__(self, K: Tensor, kernel: Pairwise, points: Tensor):
        super().__init__(K)
        self.kernel = kernel
        self.points = points

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by one sweep over all pairs."""
        # Distances do not depend on the origin, but rounding in a sweep does.
        X = self.points - collectives.mean(self.points) if self.kernel.is_isotropic else self.points
        return SweptGram(self.kernel, X).parameter_sum(A)


@register
class Dense(Strategy):
    """Store K_1 (n² numbers), because it never changes; recompute the deep layers, because they always do."""

    name = "dense"
    is_exact = True
    #: n×n matrices that are held at once
    matrices = 1

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: n² numbers for K_1, formed from two augmented copies of the samples."""
        if not work.first_is_pairwise:
            return common(work).plus(**vars(first_of_features(work)))
        stored = self.matrices * work.n**2 * work.item
        # There is no solver yet while K_1 is formed, and the copies are gone when it starts.
        forming = work.sample_bytes + max(6 * work.sample_bytes, 2 * work.sample_bytes + stored)
        base = common(work).plus(
            bytes=stored,
            flops=2.0 * work.n**2 * work.sizes[0],
            traffic=float(work.n**2 * work.item),
            setup=work.n**2 * pair_flops(work.d),
        )
        return replace(base, bytes=max(base.bytes, forming))

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Return the operator of the samples, according to the family of the kernel."""
        match kernel:
            case Pairwise():
                return self.fixed_pairs(kernel, points)
            case Explicit():
                return self.fixed_features(kernel, points)
        X = in_memory(points)
        return StoredGram(kernel(X, X))

    def fixed_pairs(self, kernel: Pairwise, points: Tensor | Rows) -> Gram:
        """Return the stored Gram matrix."""
        X = in_memory(points)
        return StoredPairs(kernel(X, X), kernel, X)

    def fixed_features(self, kernel: Explicit, points: Tensor | Rows) -> Gram:
        """Return the operator of explicit features, which are stored instead of the matrix."""
        return FeatureGram(kernel, points)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer, according to the family of the kernel."""
        match kernel:
            case Pairwise():
                return self.moving_pairs(kernel, points)
            case FourierFeatures():
                return FourierGram(kernel, points)
            case Explicit():
                return FeatureGram(kernel, points)
        raise TypeError(f"kernel: {type(kernel).__name__} cannot be used above the first layer")

    def moving_pairs(self, kernel: Pairwise, points: Tensor) -> MovingGram:
        """Return a swept Gram matrix."""
        return SweptGram(kernel, points)
