"""Half of a Gram matrix: a symmetric matrix on a CPU of which the upper triangle alone is formed, held and read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.gram.base import Gram
from drkm.gram.features import FeatureGram
from drkm.machine import blas, pages
from drkm.machine.threads import workers

#: rows and columns of a tile of K, whose exponents become kernel values while they are in the processor's cache
TILE = (256, 1024)
#: the same for kernel values with new points: of few features; of more, whose products gain from larger tiles; for the
#: threads of the BLAS; and on a GPU
CROSS_TILE, WIDE_TILE, BLAS_TILE, GPU_TILE = (128, 512), (256, 4096), (1024, 4096), (1 << 14, 1 << 14)
#: up to so many features points are augmented, but for the matrix of so few points that it stays in the cache
NARROW, FEW = 64, 1500
#: up to so many points the matrix is one tile, of which both halves are formed
WHOLE = 724
#: rows of the half that are copied to the other one at a time: copies of a square of them take next to no memory
STRIP = 64
#: with more features than this per thread, products with new points take so much longer than the rest that the threads
#: of the BLAS do them: those that are still spinning after an earlier product would be in the way of ours
FEATURES_PER_THREAD = 128
#: rows whose squares are formed at a time
ROWS = 1024
#: exponents in a tile of K, by its rows and columns
Tiles = Callable[[slice, slice], Tensor]


class TriangleGram(Gram):
    """A symmetric matrix in memory, of which entries below the diagonal are neither read nor need be there.

    Memory that is never written to takes no room: half of K is held for the whole.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        On a CPU, in rows.
    energy : float, optional
        ‖K‖_F², the sum of the squares of all eigenvalues, where it is known.
    """

    def __init__(self, K: Tensor, energy: float | None = None):
        self.K = K
        self.n = len(K)
        self.energy = energy

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        # For one column the product of a vector takes a fifth of the time.
        block = A[:, 0] if A.shape[1] == 1 else A
        return torch.from_numpy(blas.symmetric_product(self.K.numpy(), block.numpy())).view_as(A)

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.K.diagonal()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        columns = torch.arange(self.n)
        return torch.where(columns >= index[:, None], self.K[index], self.K[:, index].T)

    def whole(self) -> Tensor:
        """Return all of K, in the memory of the half."""
        for rows in slices(self.n, STRIP):
            self.K[rows.stop :, rows] = self.K[rows, rows.stop :].T
            own = self.K[rows, rows]
            own.copy_(own.triu() + own.triu(1).T)
        return self.K


def triangle(kernel: Any, X: Tensor, room: Tensor | None = None) -> TriangleGram:
    """Return the Gram matrix of the rows of X; `room` is memory like theirs that may be overwritten."""
    if kernel.is_explicit:
        K = pages.upper_triangle(len(X), X.dtype)
        blas.upper_square(FeatureGram(kernel, X).phi, K)
        return TriangleGram(K)
    if not kernel.is_pairwise:
        raise TypeError(f"kernel: {type(kernel).__name__} has no Gram matrix that can be formed by halves")
    K = pages.upper_triangle(len(X), X.dtype)
    is_square = kernel.is_isotropic and (len(X) <= FEW or X.shape[1] > NARROW)
    exponents = _of_square(kernel, X, K, room) if is_square else _of_products(kernel, X, K)
    is_tile = len(X) <= WHOLE
    energies: list[float] = []

    def form(rows: slice) -> None:
        for columns in slices(len(X), TILE[1], rows.start):
            tile = _into_values(kernel, exponents(rows, columns))
            energies.append(_squares(tile) if is_tile else _energy(tile, columns.start == rows.start))

    with workers(X.device) as share_out:
        share_out(form, slices(len(X), len(X) if is_tile else TILE[0]))
    # The sum is exact, and so the same whichever thread was first.
    return TriangleGram(K, math.fsum(energies))


def _energy(tile: Tensor, at_diagonal: bool) -> float:
    """Return what a tile has of ‖K‖_F², with its mirror image; of one that begins at the diagonal the upper part."""
    if not at_diagonal:
        return 2 * _squares(tile)
    # Some rows at a time: a copy of their square takes next to no memory.
    parts = slices(len(tile), STRIP)
    upper = sum(_squares(tile[rows, rows].triu()) + _squares(tile[rows, rows.stop :]) for rows in parts)
    return 2 * upper - _squares(tile.diagonal()[None])


def _squares(part: Tensor) -> float:
    """Return the sum of the squares of entries, which einsum reads where they are."""
    return float(np.einsum("ij,ij->", part.numpy(), part.numpy()))


def _of_square(kernel: Any, X: Tensor, K: Tensor, room: Tensor | None) -> Tiles:
    """Return exponents in tiles of K, from one product of all points with themselves."""
    origin, scale = _origin(kernel, X), kernel.pull_scale
    blas.upper_square(X if origin is None else torch.sub(X, origin, out=room), K)
    # The squares of points are on its diagonal, so that each of them has the exponent 0 with itself.
    added = K.diagonal() * (-0.5 * scale)
    return lambda rows, columns: K[rows, columns].mul_(scale).add_(added[columns]).add_(added[rows, None])


def _of_products(kernel: Any, X: Tensor, K: Tensor) -> Tiles:
    """Return exponents in tiles of K, each from a product of its own."""
    exponents = Exponents(kernel, X, wide=False)
    own = exponents.side(X)
    return lambda rows, columns: exponents.write(own[rows], columns, K[rows, columns])


def cross_product(exponents: Exponents, x: Tensor, A: Tensor, shift: Tensor) -> Tensor:
    """Return k(x, y)A - shift for the points y of the exponents; kernel values are formed and used in tiles."""
    n, threads = len(exponents.right.points), torch.get_num_threads()
    by_blas = exponents.wide and x.shape[1] > FEATURES_PER_THREAD * threads
    height, width = GPU_TILE if x.is_cuda else BLAS_TILE if by_blas else WIDE_TILE if exponents.wide else CROSS_TILE

    def add_all(rows: slice) -> None:
        left, own = exponents.side(x[rows]), out[rows]
        room, product = _room(len(own), min(width, n), x), torch.empty_like(own)
        for columns in slices(n, width):
            tile = room[: len(own) * (columns.stop - columns.start)].view(len(own), -1)
            values = _into_values(exponents.kernel, exponents.write(left, columns, tile))
            own += blas.matmul(values, A[columns], product)

    with workers(x.device, threads == 1 or not by_blas) as share_out:
        out = shift.neg().repeat(len(x), 1)
        share_out(add_all, slices(len(x), height))
    return out


def _room(rows: int, columns: int, like: Tensor) -> Tensor:
    entries = rows * columns
    return like.new_empty(entries) if like.is_cuda else pages.empty(entries, like.dtype)


def _into_values(kernel: Any, exponents: Tensor) -> Tensor:
    """Return kernel values in the memory of their exponents."""
    values = kernel.values(exponents)
    return exponents if values is exponents else exponents.copy_(values)


@dataclass(frozen=True)
class Side:
    """Points as one side of a product of exponents: their coordinates, and what is added to each row, or None."""

    points: Tensor
    added: Tensor | None

    def __getitem__(self, rows: slice) -> Side:
        return Side(self.points[rows], None if self.added is None else self.added[rows])


class Exponents:
    """Exponents e(x, y) of a pairwise kernel with given points y, in tiles.

    Narrow points are augmented, so that e is one product. For wide ones that would cost more in copies than adding
    -‖x‖²/(2σ²) and -‖y‖²/(2σ²) to a tile that is in the cache does. `wide` says which; None is by their features.
    """

    def __init__(self, kernel: Any, y: Tensor, wide: bool | None = None):
        self.kernel = kernel
        self.origin = _origin(kernel, y)
        self.wide = kernel.is_isotropic and (y.shape[1] > NARROW if wide is None else wide)
        moved = self._moved(y)
        self.right = Side(moved, self._added(moved)) if self.wide else Side(kernel.factors(moved)[1], None)

    def side(self, x: Tensor) -> Side:
        """Return points as the left side."""
        moved = self._moved(x)
        return Side(moved, self._added(moved)) if self.wide else Side(self.kernel.factors(moved)[0], None)

    def write(self, left: Side, columns: slice, tile: Tensor) -> Tensor:
        """Write the exponents of points with those of some columns into a tile."""
        blas.matmul(left.points, self.right.points[columns].T, tile)
        if left.added is None or self.right.added is None:
            return tile
        return torch.add(self.right.added[columns], tile, alpha=self.kernel.pull_scale, out=tile).add_(
            left.added[:, None]
        )

    def _moved(self, points: Tensor) -> Tensor:
        return points if self.origin is None else points - self.origin

    def _added(self, points: Tensor) -> Tensor:
        # Some rows at a time: the squares of all of them would be one more copy.
        squares = torch.cat([torch.linalg.vecdot(part, part) for part in points.split(ROWS)])
        return squares.mul_(-0.5 * self.kernel.pull_scale)


def slices(n: int, step: int, begin: int = 0) -> list[slice]:
    """Return the slices of so many rows or columns, from the first one of interest on."""
    return [slice(first, min(first + step, n)) for first in range(begin, n, step)]


def _origin(kernel: Any, X: Tensor) -> Tensor | None:
    """Return the mean of points, or None where subtracting it from them gains nothing.

    Only differences matter to isotropic kernels, and small numbers lose fewer digits. A mean that is closer to zero
    than the points are to each other costs one bit at most.
    """
    if not kernel.is_isotropic:
        return None
    mean, entries = X.mean(dim=0), X.flatten()
    return None if 2 * len(X) * mean.dot(mean) <= entries.dot(entries) else mean
