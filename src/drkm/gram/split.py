"""The first Gram matrix on the tensor cores of a GPU: recomputed at every product, in one pass that stores nothing n×n.

Numbers are split into two halves of 16 bits (see `drkm.gram._triton_split`), which keeps the digits of float32:
products are accurate to 2e-6. The same pass with only the high halves takes half the time and is accurate to 1e-3;
methods that correct themselves, such as eigensolvers, can use it for intermediate products (`Gram.rough`).
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple, TypeGuard

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.gram.base import Gram, Strategy, Subset
from drkm.gram.cost import Cost, Workload
from drkm.gram.dense import Dense
from drkm.gram.sweep import SweptGram
from drkm.gram.tiled import Tiled
from drkm.kernels import Kernel, Pairwise, Polynomial
from drkm.machine.layout import slices

#: kernel values are multiplied by 2^SHIFT: 16-bit halves have no digits for numbers far below 1, nor range above 65504
SHIFT = 14
#: halves cannot hold coordinates of scaled points beyond the first number, nor powers above the second
LARGEST, MOST_POWER = 2.0**13, 8
#: where kernel values are powers of inner products, halves have their digits if the largest ‖x‖² + c is at least this,
#: and values are scaled by at most this power of 2
LEAST_SQUARE, LARGEST_SHIFT = 2.0**-10, 100
#: columns of a block are scaled to at most 2^COLUMN_SIZE; numbers below SMALLEST count as zero
COLUMN_SIZE, SMALLEST = 10, 1e-30
#: points of a tile, and columns of a block that one pass takes
ROWS, WIDEST = 128, 32
#: features that are multiplied at once: all, up to the first number, otherwise parts of the second
WHOLE, PART = 128, 64
#: programs that keep a GPU busy, and the minimum and maximum number of points that one of them sums over
PROGRAMS, CHUNK, LONGEST = 1056, 1024, 1 << 16
#: rows of samples that are split at a time
SPLIT_ROWS = 1 << 16


class Halves(NamedTuple):
    """Scaled points as two 16-bit halves, padded with zeros to whole tiles, and their squared lengths."""

    high: Tensor
    low: Tensor
    size: Tensor

    def rounded(self) -> Halves:
        """Return the points rounded to their high halves, with the lengths that these have."""
        # Products without the low halves then belong to a positive matrix with the right diagonal.
        return self._replace(size=torch.linalg.vector_norm(self.high, dim=1, dtype=torch.float32).square())


class SplitGram(Gram):
    """The Gram matrix of an isotropic or polynomial kernel at the rows of `points`, in float32.

    If processes share the points, this is the block of this process's own points, and `times` gives the other blocks.

    Parameters
    ----------
    kernel : Pairwise
        A kernel that `serves` accepts.
    points : Tensor of shape (n, d)
    """

    def __init__(self, kernel: Pairwise, points: Tensor):
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self._passes = 3
        # The mean of all processes, so that a point has the same halves in each of them.
        self._origin = collectives.mean(points) if kernel.is_isotropic else torch.zeros_like(points[0])
        self._own = self._halves(points)

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        return self.times(self, A)

    def times(self, other: SplitGram, A: Tensor) -> Tensor:
        """Return k(points, other points) A, for another operator made by `at`."""
        return torch.cat([self._pass(other._own, block) for block in A.split(WIDEST, dim=1)], dim=1)

    def at(self, points: Tensor) -> SplitGram:
        """Return the operator of other points, relative to the same origin."""
        other = copy.copy(self)
        other.points, other.n = points, len(points)
        other._own = other._halves(points)
        return other

    @property
    def rough(self) -> SplitGram:
        """The operator with products that are accurate to 1e-3, in half the time."""
        other = copy.copy(self)
        other._passes, other._own = 1, self._own.rounded()
        return other

    def subset(self, index: Tensor) -> Subset:
        """Return the operator of some of the points."""
        part = self.at(self.points[index])
        return Subset(part, lambda A: self.times(part, A))

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.kernel.diagonal(self.points)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return self.kernel(self.points[index], self.points)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by one sweep over all pairs."""
        return SweptGram(self.kernel, self.centered_points()).parameter_sum(A)

    def with_kernel(self, kernel: Kernel) -> Gram | None:
        """Return the operator of another kernel at the same points."""
        return split_gram(kernel, self.points)

    def centered_points(self) -> Tensor:
        """Return the points relative to the origin."""
        return self.points - self._origin

    def fits_halves(self) -> bool:
        """Whether the scaled points are in the range of 16-bit numbers, whose last digits are absolute."""
        is_small = not self.kernel.is_isotropic and float(self._own.size.max()) + self._power[1] < LEAST_SQUARE
        return not is_small and bool(self._own.high.abs().max() <= LARGEST)

    def _halves(self, points: Tensor) -> Halves:
        count, width = -(-len(points) // ROWS) * ROWS, padded(points.shape[1])
        high, low = (points.new_zeros(count, width, dtype=torch.float16) for _ in range(2))
        size = points.new_zeros(count)
        for rows in slices(len(points), SPLIT_ROWS):
            scaled = (points[rows] - self._origin) * self._scale
            high[rows, : points.shape[1]], low[rows, : points.shape[1]] = halves(scaled)
            size[rows] = scaled.square().sum(dim=1)
        made = Halves(high, low, size)
        return made if self._passes == 3 else made.rounded()

    @property
    def _scale(self) -> float:
        profile = self.kernel.profile
        return math.sqrt(self.kernel.pull_scale) * (1.0 if profile is None else profile.stretch)

    def _value_scale(self, other: Halves) -> float:
        """Return a power of 2 that scales the largest possible kernel value to at most 2^SHIFT."""
        if self.kernel.is_isotropic:
            return 2.0**SHIFT
        degree, offset = self._power
        largest = math.sqrt(float(self._own.size.max()) * float(other.size.max())) + offset
        return 2.0 ** min(LARGEST_SHIFT, math.floor(SHIFT - degree * math.log2(max(largest, SMALLEST))))

    @property
    def _power(self) -> tuple[int, float]:
        """p and c of a polynomial kernel; unused for other kernels."""
        return self.kernel.parameters.get("degree", 1), self.kernel.parameters.get("offset", 0.0)

    def _pass(self, other: Halves, A: Tensor) -> Tensor:
        """Return k(points, other points) A for at most `WIDEST` columns."""
        columns = WIDEST if A.shape[1] > WIDEST // 2 else WIDEST // 2
        column_scale = torch.exp2(torch.floor(COLUMN_SIZE - torch.log2(A.abs().amax(dim=0).clamp(min=SMALLEST))))
        block = A.new_zeros(len(other.high), columns)
        block[: len(A), : A.shape[1]] = A * column_scale
        high, low = halves(block)
        scale = self._value_scale(other)
        total = A.new_zeros(len(self._own.high), columns)
        for begin in range(0, len(block), LONGEST):
            some = slice(begin, begin + LONGEST)
            total += self._sums(Halves(*(part[some] for part in other)), high[some], low[some], scale).sum(dim=0)
        # One after the other: their product can leave float32.
        return total[: self.n, : A.shape[1]] / column_scale / scale

    def _sums(self, other: Halves, high: Tensor, low: Tensor, scale: float) -> Tensor:
        """Return sums over all pairs with other points, in chunks that the caller adds up."""
        from drkm.gram import _triton_split

        (n, width), (m, columns) = self._own.high.shape, high.shape
        degree, offset = self._power
        is_whole = width <= WHOLE
        tile = 64 if is_whole else 128
        chunk = -(-max(CHUNK, -(-m * (n // ROWS) // PROGRAMS)) // tile) * tile
        out = self._own.size.new_empty(-(-m // chunk), n, columns)
        _triton_split.split_product[n // ROWS, len(out)](
            *(*self._own, *other, high, low, out, n, m, chunk, offset, scale),
            WIDTH=width,
            PART=width if is_whole else PART,
            T=columns,
            PROFILE="power" if self.kernel.profile is None else self.kernel.profile.name,
            POWER=degree,
            SHIFT=float(SHIFT),
            PASSES=self._passes,
            ROWS=ROWS,
            COLUMNS=tile,
            num_warps=4 if is_whole else 8,
            num_stages=3,
        )
        return out


class Split(Dense):
    """Recompute K_1 at every product on tensor cores; points that 16-bit halves cannot hold are tiled.

    Parameters
    ----------
    tiles : Tiled, optional
        How these are tiled.
    """

    def __init__(self, tiles: Tiled | None = None):
        self.tiles = tiles or Tiled()

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: a second copy of the samples, in halves."""
        return Strategy.cost(self, work).plus(bytes=halves_bytes(work.n, work.d))

    def fixed_pairs(self, kernel: Pairwise, points: Tensor | Rows) -> Gram:
        """Return the operator of the samples."""
        X = in_memory(points)
        return split_gram(kernel, X) or self.tiles.fixed_pairs(kernel, X)

    def describe(self) -> str:
        """Return the description: K_1 is not kept."""
        return "recomputed"


def recomputes(work: Workload) -> bool:
    """Whether K_1 should be recomputed even if it could be stored.

    With few features, recomputing K_1 takes as long as reading it, and forming it takes as long as more products than
    an eigensolver needs.
    """
    return work.d <= PART or len(work.sizes) == 1


def serves(kernel: Kernel, dtype: torch.dtype) -> TypeGuard[Pairwise]:
    """Whether products with a kernel can be computed in halves."""
    is_known = kernel.profile is not None or (type(kernel) is Polynomial and kernel.degree <= MOST_POWER)
    return dtype == torch.float32 and is_known


def split_gram(kernel: Kernel, points: Tensor) -> SplitGram | None:
    """Return the operator in halves, or None if they cannot hold the points."""
    if not serves(kernel, points.dtype):
        return None
    made = SplitGram(kernel, points)
    return made if made.fits_halves() else None


def halves(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return A as a sum of two 16-bit numbers."""
    high = A.half()
    return high, (A - high).half()


def halves_bytes(n: int, d: int) -> int:
    """Return the bytes of the halves of n points, and of their lengths."""
    return 4 * -(-n // ROWS) * ROWS * (padded(d) + 1)


def padded(d: int) -> int:
    """Return the padded number of features in halves: a power of 2, or whole parts if there are many."""
    return max(16, 1 << (d - 1).bit_length()) if d <= WHOLE else -(-d // PART) * PART
