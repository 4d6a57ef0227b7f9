"""The strategy of random Fourier features."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from drkm.gram.base import Gram, MovingGram, Strategy
from drkm.gram.checks import check_count
from drkm.gram.dense import Dense
from drkm.kernels import Explicit, FourierFeatures, Isotropic, Kernel
from drkm.kernels.fourier import draw_frequencies


@dataclass(frozen=True)
class Fourier(Strategy):
    """Replace kernels of distances by random Fourier features, in every layer.

    A gradient costs O(n·features), an encoding O(features). Kernels that have explicit features (linear, cosine,
    feature maps) are used as they are.

    Parameters
    ----------
    features : int
        Number of features of a layer, a cosine and a sine for each frequency.
    orthogonal : bool
        Draw frequencies in orthogonal blocks, which lowers the variance.
    random_state : int
        Seed of the frequencies.
    """

    features: int = 2000
    orthogonal: bool = True
    random_state: int = 0

    def __post_init__(self) -> None:
        check_count("features", self.features, 2)
        check_count("random_state", self.random_state, 0)

    def approximate(self, kernel: Kernel, points: Tensor, *, layer: int) -> Kernel:
        """Return Fourier features of a kernel that has no features of its own; every layer draws its own."""
        if isinstance(kernel, Explicit):
            return kernel
        if not isinstance(kernel, Isotropic):
            raise ValueError(
                "gram: Fourier features need a kernel of distances (RBF, Laplacian, Matern), "
                f"got {type(kernel).__name__} in layer {layer}"
            )
        frequencies = draw_frequencies(
            kernel,
            points.shape[1],
            (self.features + 1) // 2,
            orthogonal=self.orthogonal,
            random_state=self.random_state + layer,
            like=points,
        )
        return FourierFeatures(kernel, frequencies)

    def fixed(self, kernel: Kernel, points: Tensor) -> Gram:
        """Return the operator of the first layer, its features stored."""
        return Dense().fixed(kernel, points)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        return Dense().moving(kernel, points)
