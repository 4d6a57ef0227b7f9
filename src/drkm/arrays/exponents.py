"""Exponents of pairwise kernels in tiles, and products of kernel values with new points that are never stored.

Points are arrays or, for kernels of torch and on a GPU, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drkm.arrays.forms import into_values
from drkm.machine import blas, pages, threads
from drkm.machine.elementwise import mean_of, scaled_sum_, squared_lengths, sum_of_squares, tiles_in_place
from drkm.machine.layout import slices

#: up to this many features, points are augmented so that their exponents are a single product
NARROW = 64
#: rows and columns of a tile of kernel values with new points: for few features; for more, whose products gain from
#: larger tiles; for the threads of the BLAS; and on a GPU. Last bits depend on them, so that the number of threads must
#: not choose.
NARROW_TILE, WIDE_TILE, BLAS_TILE, GPU_TILE = (128, 512), (256, 4096), (1024, 1024), (1 << 14, 1 << 14)
#: with more features than this, nearly all of the time is spent in products, and the threads of the BLAS do them; our
#: own threads would share the cores with those that still spin after an earlier product
MANY_FEATURES = 256
#: cost of a kernel value in multiply-adds, besides the product of its points
PER_VALUE = 64


@dataclass(frozen=True)
class Side:
    """Points as one factor of the exponents: their coordinates and, for wide points, a number to add for each."""

    points: Any
    added: Any | None

    def __getitem__(self, rows: slice) -> Side:
        return Side(self.points[rows], None if self.added is None else self.added[rows])


class Exponents:
    """Exponents e(x, y) of a pairwise kernel with given points y, in tiles.

    Points with few features are augmented, so that e is one product. With many features the copies would cost more than
    adding -‖x‖²/(2σ²) and -‖y‖²/(2σ²) to a tile in the cache. `wide` chooses the latter; by default, the number of
    features decides.

    Parameters
    ----------
    kernel : Kernel, Gaussian, Power or OfTorch
        A kernel of torch for tensors, a form for arrays.
    y : array or Tensor of shape (n, d)
    wide : bool, optional
    """

    def __init__(self, kernel: Any, y: Any, wide: bool | None = None):
        self.kernel = kernel
        self.origin = origin_of(kernel, y)
        self.wide = kernel.is_isotropic and (y.shape[1] > NARROW if wide is None else wide)
        moved = self._moved(y)
        self.right = Side(moved, self._added(moved)) if self.wide else Side(kernel.factors(moved)[1], None)

    def side(self, x: Any) -> Side:
        """Return points as the left factor."""
        moved = self._moved(x)
        return Side(moved, self._added(moved)) if self.wide else Side(self.kernel.factors(moved)[0], None)

    def write(self, left: Side, columns: slice, tile: Any) -> Any:
        """Write the exponents of points with some of the given ones into a tile."""
        blas.matmul(left.points, self.right.points[columns].T, tile)
        if left.added is None or self.right.added is None:
            return tile
        return scaled_sum_(tile, self.kernel.pull_scale, self.right.added[columns], left.added, rounded=False)

    def _moved(self, points: Any) -> Any:
        return points if self.origin is None else points - self.origin

    def _added(self, points: Any) -> Any:
        squares = squared_lengths(points)
        squares *= self.kernel.half_of_squares(points) * self.kernel.pull_scale
        return squares


def origin_of(kernel: Any, X: Any) -> Any | None:
    """Return the mean of points, which is subtracted from all, or None if that would gain nothing.

    An isotropic kernel depends only on differences, and smaller numbers lose fewer digits. If the mean is closer to
    zero than points are to the mean, at most one bit is lost without the subtraction.
    """
    if not kernel.is_isotropic:
        return None
    mean = mean_of(X)
    return None if 2 * len(X) * sum_of_squares(mean) <= sum_of_squares(X.reshape(-1)) else mean


def is_quick(points: int, given: int, features: int) -> bool:
    """Whether one thread computes the codes of so many points before a second one wakes up."""
    return points * given * (features + PER_VALUE) < threads.FEW_PRODUCTS


def add_product(exponents: Exponents, x: Any, A: Any, out: Any) -> None:
    """Add k(x, y)A to `out` for the points y of the exponents, with one tile of kernel values per thread."""
    n, on_gpu = len(exponents.right.points), getattr(x, "is_cuda", False)
    several = not is_quick(len(x), n, x.shape[1])
    by_blas = exponents.wide and x.shape[1] > MANY_FEATURES
    height, width = GPU_TILE if on_gpu else BLAS_TILE if by_blas else WIDE_TILE if exponents.wide else NARROW_TILE

    @tiles_in_place()
    def add_all(rows: slice) -> None:
        left, own = exponents.side(x[rows]), out[rows]
        room = pages.empty_like(len(own) * min(width, n), x)
        product = pages.empty_like(len(own) * own.shape[1], x).reshape(own.shape)
        for columns in slices(n, width):
            tile = room[: len(own) * (columns.stop - columns.start)].reshape(len(own), -1)
            values = into_values(exponents.kernel, exponents.write(left, columns, tile))
            own += blas.matmul(values, A[columns], product)

    with threads.workers(x, not (by_blas and several), several=several) as share_out:
        share_out(add_all, slices(len(x), height))
