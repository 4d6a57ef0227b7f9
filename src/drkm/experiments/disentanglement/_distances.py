"""A Gram strategy for training in which σ² changes in every step: distances of images are formed only once."""

from __future__ import annotations

from torch import Tensor

from drkm.files.rows import Rows, in_memory
from drkm.gram import Dense, Gram, StoredGram
from drkm.kernels import Pairwise


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
    #: distances, exponents, values, and the copy that values are computed from
    matrices = 4

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
