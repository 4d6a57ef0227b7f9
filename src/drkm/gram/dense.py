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

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: n² numbers for K_1, formed from two augmented copies of the samples."""
        if not work.first_is_pairwise:
            return common(work).plus(**vars(first_of_features(work)))
        # There is no solver yet while K_1 is formed, and the copies are gone when it starts.
        forming = work.sample_bytes + max(6 * work.sample_bytes, 2 * work.sample_bytes + self._stored(work))
        base = common(work).plus(
            bytes=self._stored(work),
            flops=2.0 * work.n**2 * work.sizes[0],
            traffic=float(work.n**2 * work.item),
            setup=work.n**2 * pair_flops(work.d),
        )
        return replace(base, bytes=max(base.bytes, forming))

    def _stored(self, work: Workload) -> int:
        return work.n**2 * work.item

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


class ExponentGram(StoredGram):
    """A Gram matrix f(e) held in memory with its exponents e = -‖x-y‖²/(2σ²)."""

    def __init__(self, kernel: Pairwise, exponents: Tensor):
        super().__init__(kernel.values(exponents.clone()))
        self.kernel = kernel
        self.exponents = exponents

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by ∂e/∂log σ² = -e."""
        slope = self.kernel.jet(self.exponents.clone(), 1)[1]
        return -float((self.exponents * slope * (A @ A.T)).sum())


class RememberedDistances(Dense):
    """Also store the squared distances of the samples, for bandwidths that change while they are learned.

    One object can serve several fits; it remembers only the last samples.
    """

    name = "remembered distances"

    def __init__(self) -> None:
        self._points: Tensor | None = None
        self._halves: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        # What can be recomputed is not pickled with a model.
        return {"_points": None, "_halves": None}

    def fixed_pairs(self, kernel: Pairwise, points: Tensor | Rows) -> Gram:
        """Return the Gram matrix from remembered distances; other kernels are treated as in `Dense`."""
        if not kernel.is_isotropic:
            return super().fixed_pairs(kernel, points)
        X = in_memory(points)
        if self._halves is None or self._points is not X:
            centred = X - X.mean(dim=0)
            norms = centred.square().sum(dim=1)
            self._points = X
            self._halves = (centred @ centred.T - 0.5 * (norms[:, None] + norms)).clamp_(max=0)
            self._halves.fill_diagonal_(0)
        return ExponentGram(kernel, self._halves * kernel.pull_scale)

    def _stored(self, work: Workload) -> int:
        # distances, exponents, values, and the copy that values are computed from
        return 4 * work.n**2 * work.item
