"""The Gram matrix of layer 1 in square tiles: those that fit into memory are kept, the others are recomputed.

A tile (I, J) above the diagonal serves the rows I and the rows J, so that only half of the values are computed and
kept. In the deep layers this does not pay: their values are so cheap that the second, transposed product costs as much
as the second exponential would (at n = 3000, 10 inputs, 27 ms per sweep either way), so that they are swept by rows.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, combinations_with_replacement, pairwise

import torch
from torch import Tensor

from drkm.files.rows import Rows, mean_row
from drkm.gram.base import Gram
from drkm.gram.cost import Workload, start_width
from drkm.gram.sweep import parameter_sum
from drkm.gram.tiles import (
    LANE_NUMBERS,
    KeptTiles,
    OrderedSum,
    Strip,
    aligned_entries,
    form,
    lanes,
    multiply,
    tile_rows,
)
from drkm.kernels import Kernel, Pairwise
from drkm.machine.layout import slices
from drkm.machine.threads import ShareOut, one_after_the_other, workers

#: copies of a tile's samples that are alive while its exponents are formed
SAMPLE_COPIES = 7
#: parts of the rows of a tile that those of a tile on the diagonal have
DIAGONAL_PARTS = 4
#: number of parts in which the factors of a tile's samples are formed, and numbers that one part may have in any case
FACTOR_PARTS, FACTOR_ENTRIES = 8, 1 << 16


class TiledGram(Gram):
    """The Gram matrix of a pairwise kernel at samples that may be in a file.

    Parameters
    ----------
    kernel : Pairwise
    points : Tensor or Rows, of shape (n, d)
    keep : float
        Bytes of tiles that stay in memory between products. The result does not depend on it.
    rows : int, optional
        Rows of a tile.
    """

    def __init__(self, kernel: Pairwise, points: Tensor | Rows, keep: float = 0, rows: int | None = None):
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self._rows = rows or tile_rows(points.device)
        self._slices = slices(self.n, self._rows)
        # Only differences matter to isotropic kernels, and points around 0 lose fewer digits.
        self._origin = mean_row(points) if kernel.is_isotropic else None
        self._tiles = KeptTiles(keep, half_entries(self.n, self._rows, points.dtype.itemsize))

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        places = _places(self.n, self._rows)
        parts = _split(places, lanes(_pairs(self.n, self._rows), A.numel(), A.device))
        block, factors, total = A.T.contiguous(), self._factors(), OrderedSum()
        with workers(A) as share_out:

            def add(lane: int, share_out: ShareOut) -> None:
                side = Strip(block)
                self._add(parts[lane], side, factors, share_out)
                total.add(lane, side.product)

            # Products with kept tiles need no memory of their own: each part is the work of one thread.
            kept = [lane for lane, part in enumerate(parts) if all(_key(place) in self._tiles for place in part)]
            share_out(lambda lane: add(lane, one_after_the_other), kept)
            # Tiles that are formed have the same buffer, so that threads share the work of each.
            for lane in sorted({*range(len(parts))}.difference(kept)):
                add(lane, share_out)
        return total.value.T.contiguous()

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return torch.cat([self.kernel.diagonal(self.points[rows]) for rows in self._slices])

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        factors = self._factors()
        left = factors.of(self.points[index])[0]
        return torch.cat([self.kernel.values(left @ factors.right(lower).T) for lower in self._slices], dim=1)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by ∂e/∂log σ² = -e."""
        total = 0.0
        A, factors = A.contiguous(), self._factors()
        for i, upper in enumerate(self._slices):
            left = factors.left(upper)
            for lower in self._slices[i:]:
                right = factors.right(lower).T.contiguous()
                times = 1 if upper == lower else 2
                total += times * parameter_sum(self.kernel, left, right, A[upper], A[lower])
        return total

    def with_kernel(self, kernel: Kernel) -> TiledGram | None:
        """Return the operator of another kernel at the same points, which reuses the memory of the kept tiles."""
        # Points around 0 serve kernels of distances only.
        if not isinstance(kernel, Pairwise) or kernel.is_isotropic != self.kernel.is_isotropic:
            return None
        other = copy.copy(self)
        other.kernel, other._tiles = kernel, self._tiles.emptied()
        return other

    @property
    def kept_bytes(self) -> int:
        """Bytes of the kept tiles."""
        return self._tiles.nbytes

    def keep_at_most(self, keep: float) -> None:
        """Free the kept tiles if they take more than `keep` bytes, and keep no more from now on."""
        self._tiles.keep_at_most(keep)

    def _add(self, places: Sequence[_Place], side: Strip, factors: _Factors, share_out: ShareOut) -> None:
        """Add the products of some tiles; those that are not kept are formed."""
        for upper, lower in places:

            def write(tile: Tensor, upper: slice = upper, lower: slice = lower) -> None:
                form(self.kernel, factors.left(upper), factors.right(lower), tile, share_out)

            shape = (upper.stop - upper.start, lower.stop - lower.start)
            tile = self._tiles.at(_key((upper, lower)), shape, side.block, write)
            multiply(tile, side[upper], None if upper == lower else side[lower], share_out)

    def _factors(self) -> _Factors:
        return _Factors(self.kernel, self.points, self._origin, self._slices[0].stop)


#: rows and columns of a tile
_Place = tuple[slice, slice]


def _key(place: _Place) -> tuple[int, int]:
    return place[0].start, place[1].start


def _places(n: int, rows: int) -> list[_Place]:
    """Return the places of all tiles on and above the diagonal; those on it are smaller, as half of each is unused."""
    places: list[_Place] = []
    for upper, lower in combinations_with_replacement(slices(n, rows), 2):
        if upper == lower:
            parts = slices(upper.stop, _diagonal_rows(rows), upper.start)
            places += combinations_with_replacement(parts, 2)
        else:
            places.append((upper, lower))
    return places


def _diagonal_rows(rows: int) -> int:
    return -(-rows // DIAGONAL_PARTS)


def _entries(place: _Place) -> int:
    upper, lower = place
    return (upper.stop - upper.start) * (lower.stop - lower.start)


def _split(places: list[_Place], count: int) -> list[list[_Place]]:
    """Split tiles, in order, into parts of about as many entries each."""
    done = [0, *accumulate(map(_entries, places))]
    cuts = [bisect_left(done, done[-1] * part / count) for part in range(count + 1)]
    return [places[begin:end] for begin, end in pairwise(cuts)]


class _Factors:
    """Left and right factors of the samples of a tile, in a buffer for each side.

    They are formed a few rows at a time: copies of all samples of a tile would need most of the memory.
    """

    def __init__(self, kernel: Pairwise, points: Tensor | Rows, origin: Tensor | None, most: int):
        self._kernel, self._points, self._origin, self._most = kernel, points, origin, most
        self._step = max(-(-most // FACTOR_PARTS), FACTOR_ENTRIES // points.shape[1])
        self._buffers: dict[int, Tensor] = {}
        self._held: dict[int, slice] = {}

    def left(self, rows: slice) -> Tensor:
        """Return left factors, which stay until those of other rows are asked for."""
        return self._side(0, rows)

    def right(self, rows: slice) -> Tensor:
        """Return right factors."""
        return self._side(1, rows)

    def of(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return both factors of any points."""
        return self._kernel.factors(points if self._origin is None else points - self._origin)

    def _side(self, side: int, rows: slice) -> Tensor:
        count = rows.stop - rows.start
        if self._held.get(side) != rows:
            for some in slices(count, self._step):
                formed = self.of(self._points[rows.start + some.start : rows.start + some.stop])[side]
                if side not in self._buffers:
                    self._buffers[side] = formed.new_empty(self._most, formed.shape[1])
                self._buffers[side][some] = formed
            self._held[side] = rows
        return self._buffers[side][:count]


def half_entries(n: int, rows: int, item: int) -> int:
    """Return the number of entries of all tiles on and above the diagonal."""
    # All tiles are equal but the last ones: a list of all of them would be long.
    whole, rest = divmod(n, rows)
    above = math.comb(whole, 2) * aligned_entries(rows, rows, item) + whole * aligned_entries(rows, rest, item)
    return above + whole * _on_diagonal(rows, rows, item) + _on_diagonal(rest, rows, item)


def _pairs(n: int, rows: int) -> int:
    """Return the number of pairs of so many rows, each with itself too: a tile, or all of a place on the diagonal."""
    return math.comb(-(-n // rows) + 1, 2)


def _on_diagonal(n: int, rows: int, item: int) -> int:
    sizes = [part.stop - part.start for part in slices(n, _diagonal_rows(rows))]
    return sum(aligned_entries(*sides, item) for sides in combinations_with_replacement(sizes, 2))


def tile_bytes(work: Workload) -> int:
    """Return the bytes needed to form a tile of layer 1, and for the parts of products that are summed on their own."""
    if not work.first_is_pairwise:
        return 0
    size = tile_rows(work.device)
    rows = min(work.n, size)
    others = lanes(_pairs(work.n, size), 1, work.device) - 1
    sums = min(others * work.n * start_width(work.components), LANE_NUMBERS)
    return work.item * (rows * (SAMPLE_COPIES * (work.d + 2) + 2 * rows) + sums)


def half_bytes(work: Workload) -> int:
    """Return the bytes of all tiles of layer 1 on and above the diagonal."""
    return work.item * half_entries(work.n, tile_rows(work.device), work.item)
