"""The plain strategy: the first Gram matrix is stored, those of moving points are swept."""

from __future__ import annotations

from torch import Tensor

from drkm.gram.base import Gram, MovingGram, Strategy
from drkm.gram.features import FeatureGram
from drkm.gram.sweep import SweptGram
from drkm.kernels import Explicit, Kernel, Pairwise


class StoredGram(Gram):
    """A Gram matrix held in memory."""

    def __init__(self, K: Tensor):
        self.K = K
        self.n = len(K)

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        return self.K @ A

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.K.diagonal()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return self.K[index]


class Dense(Strategy):
    """Store K_1 (n² numbers), because it never changes; recompute the deep layers, because they always do."""

    def fixed(self, kernel: Kernel, points: Tensor) -> Gram:
        """Return the stored Gram matrix of the samples; explicit features are kept as features."""
        if isinstance(kernel, Explicit):
            return FeatureGram(kernel, points)
        return StoredGram(kernel(points, points))

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        if isinstance(kernel, Pairwise):
            return SweptGram(kernel, points)
        if isinstance(kernel, Explicit):
            return FeatureGram(kernel, points)
        raise TypeError(f"kernel: {type(kernel).__name__} cannot be used above the first layer")
