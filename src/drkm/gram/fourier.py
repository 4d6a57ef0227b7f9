"""The strategy `Fourier`, which uses random Fourier features in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.gram.base import Gram, MovingGram, Strategy, register
from drkm.gram.cost import VALUE_FLOPS, Cost, Workload, features_cost
from drkm.gram.dense import Dense
from drkm.kernels import FourierFeatures, Isotropic, Kernel
from drkm.kernels.approximation import TABLE_ROWS
from drkm.kernels.fourier import MOST
from drkm.validation import checks


@register
@dataclass(frozen=True)
class Fourier(Strategy):
    """Replace kernels of distances by random Fourier features, in every layer.

    A gradient costs O(n·features), an encoding O(features). Kernels with explicit features (linear, cosine, feature
    maps) are not changed.

    Parameters
    ----------
    features : int
        Number of features per layer, at most 20 million: a cosine and a sine for each frequency.
    orthogonal : bool
        Draw frequencies in orthogonal blocks, which lowers the variance.
    random_state : int
        Seed of the frequencies.
    """

    features: int = 2000
    orthogonal: bool = True
    random_state: int = 0

    def __post_init__(self) -> None:
        if checks.integer("features", self.features, 2) > 2 * MOST:
            raise ValueError(f"features: expected an integer from 2 to {2 * MOST}, got {self.features}")
        checks.integer("random_state", self.random_state, 0)

    name = "fourier"
    reads_tiles = True

    def serves(self, work: Workload) -> bool:
        """Whether all kernels have a spectral density that is known, or explicit features."""
        return all(_has_frequencies(kernel) or kernel.is_explicit for kernel in work.kernels)

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: n×D features of the first layer, and two sweeps per gradient in the others."""
        width = work.kernels[0].count or self.features
        rows = min(work.n, TABLE_ROWS)
        # While features are computed: copies of a block of rows, and the frequencies, which are drawn in float64.
        forming = work.item * (3 * rows * (work.d + width) + work.d * width) + 12 * work.d * width
        first = features_cost(work, width).plus(bytes=forming, setup=2.0 * work.n * width / 2 * work.d)
        return first.plus(flops=self.deep_flops(work))

    def deep_flops(self, work: Workload) -> float:
        """Return the operations of the deep layers for one gradient.

        A sweep computes phases, cosines and sines; the first one sums over samples, the second one computes product and
        pull.
        """
        pairs = zip(work.sizes, work.sizes[1:], strict=False)
        sweep = sum(2 * (2 * below + 2 * VALUE_FLOPS) + 12 * own + 2 * below + 4 for below, own in pairs)
        return float(work.n) * (self.features / 2) * sweep

    def feature_count(self, work: Workload) -> int | None:
        """Return the number of cosines and sines, or that of the kernel's own features."""
        return super().feature_count(work) or 2 * ((self.features + 1) // 2)

    def describe(self) -> str:
        """Return a short description."""
        return f"{self.features} Fourier features per layer"

    def approximate(self, kernel: Kernel, points: Tensor | Rows, *, layer: int) -> Kernel:
        """Return Fourier features of a kernel without explicit features; every layer draws its own frequencies."""
        if kernel.is_explicit:
            return kernel
        if not _has_frequencies(kernel):
            raise ValueError(
                "gram: Fourier features need a kernel of distances with spectral_degrees (RBF, Laplacian, Matern), "
                f"got {type(kernel).__name__} in layer {layer}"
            )
        return FourierFeatures.drawn(
            kernel,
            points.shape[1],
            (self.features + 1) // 2,
            orthogonal=self.orthogonal,
            random_state=self.random_state + layer,
            like=torch.empty(0, dtype=points.dtype, device=points.device),
        )

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Return the operator of the first layer, with stored features."""
        return Dense().fixed(kernel, points)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        return Dense().moving(kernel, points)


def _has_frequencies(kernel: Kernel) -> TypeGuard[Isotropic]:
    """Whether frequencies can be drawn from the spectral density of a kernel."""
    return isinstance(kernel, Isotropic) and kernel.spectral_degrees is not None
