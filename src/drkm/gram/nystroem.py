"""The strategy `Nystroem`, which uses Nyström features in the first layer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from drkm.files.rows import Rows
from drkm.gram.base import NAMES as STRATEGIES
from drkm.gram.base import Gram, MovingGram, Strategy, register
from drkm.gram.cost import Cost, Workload, features_cost, pair_flops
from drkm.gram.dense import Dense
from drkm.gram.landmarks import NAMES, choose_landmarks
from drkm.kernels import Kernel, NystroemFeatures, Pairwise
from drkm.kernels.approximation import TABLE_ROWS
from drkm.validation import checks


@register
@dataclass(frozen=True)
class Nystroem(Strategy):
    """Replace the first kernel by Nyström features at m landmarks; `deep` is the strategy of the other layers.

    A gradient costs O(n·m), an encoding O(m). With m ≥ n the first layer is exact.

    Parameters
    ----------
    m : int
        Number of landmarks.
    landmarks : {"uniform", "kmeans", "rpcholesky"}
        Samples drawn uniformly, centres of k-means, or samples drawn by randomly pivoted Cholesky, which prefers
        samples that the earlier landmarks approximate poorly.
    deep : Strategy
        Strategy of the deep layers: `Fourier()`, with a cost proportional to n, or an exact one, proportional to n².
    random_state : int
        Seed of the landmarks.
    """

    m: int = 2000
    landmarks: str = "uniform"
    deep: Strategy = field(default_factory=lambda: STRATEGIES["fourier"]())
    random_state: int = 0

    def __post_init__(self) -> None:
        checks.integer("m", self.m, 1)
        checks.integer("random_state", self.random_state, 0)
        if self.landmarks not in NAMES:
            raise ValueError(f"landmarks: got {self.landmarks!r}, allowed are {', '.join(NAMES)}")
        if not isinstance(self.deep, Strategy):
            raise TypeError(f"deep: expected a drkm.gram object, got {self.deep!r}")

    name = "nystroem"
    reads_tiles = True

    @property
    def hides_samples(self) -> bool:
        """Whether no landmark is a sample; a file then holds no sample."""
        return self.landmarks == "kmeans"

    def serves(self, work: Workload) -> bool:
        """Whether the first kernel is a function of two points, and `deep` supports the others."""
        first, *above = work.kernels
        # Whether `deep` supports the first layer does not matter.
        deep = replace(work, kernels=(above[0] if above else first, *above))
        return (first.is_pairwise or first.is_explicit) and (not above or self.deep.serves(deep))

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: n×m features, landmarks, their factor, and temporary memory to compute these."""
        m, rows = min(self.m, work.n), min(work.n, TABLE_ROWS)
        # Copies of the landmarks, with their eigenproblem in float64; then copies of a block of rows.
        factor = 8 * (4 * m * work.d + 8 * m**2)
        table = work.item * (3 * (rows + m) * work.d + 2 * rows * m)
        cost = features_cost(work, m).plus(
            bytes=m * work.d * work.item + 8 * m**2 + max(factor, table),
            setup=work.n * m * (pair_flops(work.d) + 2.0 * m) + 10.0 * m**3,
        )
        return cost.plus(flops=self.deep.deep_flops(work))

    def feature_count(self, work: Workload) -> int | None:
        """Return the number of landmarks, or that of the kernel's own features."""
        return super().feature_count(work) or min(self.m, work.n)

    def describe(self) -> str:
        """Return a short description."""
        return f"{self.m} landmarks, deep layers: {self.deep.describe()}"

    def approximate(self, kernel: Kernel, points: Tensor | Rows, *, layer: int) -> Kernel:
        """Return Nyström features of the first kernel if it has no explicit features; other layers are up to `deep`."""
        if layer > 1:
            return self.deep.approximate(kernel, points, layer=layer)
        if kernel.is_explicit:
            return kernel
        if not isinstance(kernel, Pairwise):
            raise ValueError(
                f"gram: Nyström features need a kernel that is a function of two points, got {type(kernel).__name__}"
            )
        return NystroemFeatures(kernel, choose_landmarks(self.landmarks, kernel, points, self.m, self.random_state))

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Return the operator of the first layer, with stored features."""
        return Dense().fixed(kernel, points)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        return self.deep.moving(kernel, points)
