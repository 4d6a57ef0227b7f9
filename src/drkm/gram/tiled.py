"""The Gram matrix of layer 1 in square tiles: those that fit into memory are kept, the others are recomputed.

A tile (I, J) above the diagonal is used for the rows I and, transposed, for the rows J, so that only half of the values
are computed and kept. In the deep layers this does not pay: their values are so cheap that the second, transposed
product costs as much as the second exponential would (at n = 3000, 10 inputs, 27 ms per sweep either way), so that they
are swept by rows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from drkm.files.rows import Rows, mean_row, slices
from drkm.gram.base import Gram, register
from drkm.gram.cost import (
    Cost,
    Workload,
    common,
    encoder_bytes,
    feature_blocks,
    first_of_features,
    pair_flops,
    rule_bytes,
    thread_bytes,
)
from drkm.gram.dense import Dense
from drkm.gram.exponents import into_values
from drkm.gram.sweep import parameter_sum
from drkm.kernels import Explicit, Kernel, Pairwise
from drkm.machine import memory as memory_of
from drkm.machine.devices import size_on
from drkm.machine.layout import ALIGNMENT
from drkm.machine.threads import ShareOut, workers

#: rows of a tile; with 4096 features, its products then take most of the time, not the reading of samples
TILE_ROWS = {"cpu": 1024, "cuda": 8192}
#: rows of a tile that one thread of a CPU computes at a time
PART_ROWS = 256
#: copies of a tile's samples that are alive while its exponents are formed
SAMPLE_COPIES = 7
#: number of parts in which the factors of a tile's samples are formed, and numbers that one part may have in any case
FACTOR_PARTS, FACTOR_ENTRIES = 8, 1 << 16
#: share of the available memory that is used without an explicit budget
SHARE = 0.5


def _aligned(entries: int, item: int) -> int:
    """Return the number of entries rounded up so that the next tile is aligned: last bits of products depend on it."""
    step = ALIGNMENT // item
    return -(-entries // step) * step


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
        rows = rows or size_on(points.device, TILE_ROWS)
        self._slices = slices(self.n, rows)
        # Only differences matter to isotropic kernels, and points around 0 lose fewer digits.
        self._origin = mean_row(points) if kernel.is_isotropic else None
        self._keep = keep
        self._kept: dict[tuple[int, int], Tensor] = {}
        self._pool: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        # A copy recomputes its tiles; as views of one block, each would be pickled with the whole block.
        return {**vars(self), "_kept": {}, "_pool": None}

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        # A few rows times a tile: as columns to the right of it they take BLAS up to three times as long.
        rows, out = A.T.contiguous(), A.new_zeros(A.shape[1], self.n)
        with workers(A.device) as share_out:
            for upper, lower, tile in self._tiles(share_out):
                _add_product(out[:, upper], rows[:, lower], tile.T, share_out)
                if upper != lower:
                    _add_product(out[:, lower], rows[:, upper], tile, share_out)
        return out.T.contiguous()

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return torch.cat([self.kernel.diagonal(self.points[rows]) for rows in self._slices])

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        left = self._factors(self.points[index])[0]
        return torch.cat([self.kernel.values(left @ self._side(1, lower).T) for lower in self._slices], dim=1)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by ∂e/∂log σ² = -e."""
        total = 0.0
        A = A.contiguous()
        for i, upper in enumerate(self._slices):
            left = self._side(0, upper)
            for lower in self._slices[i:]:
                right = self._side(1, lower).T.contiguous()
                times = 1 if upper == lower else 2
                total += times * parameter_sum(self.kernel, left, right, A[upper], A[lower])
        return total

    def with_kernel(self, kernel: Kernel) -> TiledGram | None:
        """Return the operator of another kernel at the same points, which reuses the memory of the kept tiles."""
        if not isinstance(kernel, Pairwise):
            return None
        other = copy.copy(self)
        # The copy does not own the tiles and their memory.
        other.kernel, other._pool = kernel, self._pool
        self._kept, self._pool = {}, None
        return other

    @property
    def kept_bytes(self) -> int:
        """Bytes of the kept tiles."""
        return sum(tile.nbytes for tile in self._kept.values())

    def keep_at_most(self, keep: float) -> None:
        """Free the kept tiles if they take more than `keep` bytes, and keep no more from now on."""
        self._keep = min(self._keep, keep)
        if self._pool is not None and self._pool.nbytes > self._keep:
            self._kept, self._pool = {}, None

    def _tiles(self, share_out: ShareOut) -> Iterator[tuple[slice, slice, Tensor]]:
        """Yield the tiles on and above the diagonal with their row and column slices."""
        # Tiles that are not kept share one buffer: freed blocks of this size are not always reused.
        memory: Tensor | None = None
        places: dict[int, Tensor] = {}
        for i, upper in enumerate(self._slices):
            left: Tensor | None = None
            for j, lower in enumerate(self._slices[i:], start=i):
                tile = self._kept.get((i, j))
                if tile is None:
                    left = self._side(0, upper, places) if left is None else left
                    memory = left.new_empty(self._slices[0].stop ** 2) if memory is None else memory
                    shape = (upper.stop - upper.start, lower.stop - lower.start)
                    place = memory[: shape[0] * shape[1]].view(shape)
                    self._form(place, left, self._side(1, lower, places), share_out)
                    tile = self._kept_if_room(i, j, place)
                yield upper, lower, tile

    def _form(self, tile: Tensor, left: Tensor, right: Tensor, share_out: ShareOut) -> None:
        """Write kernel values into a tile, a few rows at a time so that they stay in the cache of a CPU."""

        def form(rows: slice) -> None:
            part = tile[rows]
            into_values(self.kernel, torch.mm(left[rows], right.T, out=part))

        share_out(form, _parts(len(tile), tile.device))

    def _kept_if_room(self, i: int, j: int, tile: Tensor) -> Tensor:
        """Return the tile, which is kept from now on if there is room for it.

        Kept tiles share one allocation: between the short-lived blocks of their computation they would leave holes, and
        the process would grow far beyond the memory that it uses.
        """
        if self._pool is None:
            self._pool = tile.new_empty(int(min(self._keep / tile.element_size(), self._all_entries(tile))))
        used = sum(_aligned(other.numel(), other.element_size()) for other in self._kept.values())
        place = self._pool[used : used + tile.numel()]
        if len(place) < tile.numel():
            return tile
        self._kept[i, j] = place.view_as(tile).copy_(tile)
        return self._kept[i, j]

    def _all_entries(self, like: Tensor) -> int:
        """Return the number of entries of all tiles on and above the diagonal, each at an aligned address."""
        heights, item = [rows.stop - rows.start for rows in self._slices], like.element_size()
        return sum(_aligned(height * other, item) for i, height in enumerate(heights) for other in heights[i:])

    def _side(self, side: int, rows: slice, places: dict[int, Tensor] | None = None) -> Tensor:
        """Return the left or right factors of some points, in the same buffer if they have been formed before.

        They are formed a few rows at a time: copies of all samples of a tile would need most of the memory.
        """
        places, count = {} if places is None else places, rows.stop - rows.start
        step = max(-(-self._slices[0].stop // FACTOR_PARTS), FACTOR_ENTRIES // self.points.shape[1])
        for some in slices(count, step):
            formed = self._factors(self.points[rows.start + some.start : rows.start + some.stop])[side]
            if side not in places:
                places[side] = formed.new_empty(self._slices[0].stop, formed.shape[1])
            places[side][some] = formed
        return places[side][:count]

    def _factors(self, points: Tensor) -> tuple[Tensor, Tensor]:
        return self.kernel.factors(points if self._origin is None else points - self._origin)


def _add_product(out: Tensor, rows: Tensor, matrix: Tensor, share_out: ShareOut) -> None:
    """Add a product to a few rows, in blocks of columns."""
    parts = _parts(matrix.shape[1], out.device)
    share_out(lambda columns: out[:, columns].addmm_(rows, matrix[:, columns]), parts)


def _parts(count: int, device: torch.device) -> list[slice]:
    return slices(count, count if device.type == "cuda" else PART_ROWS)


class StreamedFeatures(Gram):
    """ΦΦᵀ of samples in a file, which is read twice per product; no features are kept."""

    of_features = True

    def __init__(self, kernel: Explicit, points: Rows):
        self.kernel = kernel
        self.points = points
        self.n = len(points)

    def matmul(self, A: Tensor) -> Tensor:
        """Return Φ(ΦᵀA)."""
        inner: Tensor | float = 0.0
        for rows, phi in self._tiles():
            inner = inner + phi.T @ A[rows]
        out = torch.empty_like(A, memory_format=torch.contiguous_format)
        for rows, phi in self._tiles():
            out[rows] = phi @ inner
        return out

    def diagonal(self) -> Tensor:
        """Return ‖φ‖² of every sample."""
        return torch.cat([phi.square().sum(dim=1) for _, phi in self._tiles()])

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of ΦΦᵀ."""
        chosen = self._features(self.points[index])
        return torch.cat([chosen @ phi.T for _, phi in self._tiles()], dim=1)

    def _tiles(self) -> Iterator[tuple[slice, Tensor]]:
        for rows in self.kernel.blocks(self.points):
            yield rows, self._features(self.points[rows])

    def _features(self, points: Tensor) -> Tensor:
        with torch.no_grad():
            return self.kernel.features(points)


@register
class Tiled(Dense):
    """Keep as many tiles of K_1 as a budget allows and recompute the others; samples may be in memory or in a file.

    Parameters
    ----------
    memory : float, optional
        Bytes that a fit may use in all: samples, codes, workspace and tiles. By default half of the memory that is
        available when the fit starts.
    keep : float, optional
        Bytes of tiles to keep; by default what `memory` leaves. Neither parameter changes the result.
    """

    name = "tiled"
    reads_tiles = True

    def __init__(self, memory: float | None = None, keep: float | None = None):
        for name, value in (("memory", memory), ("keep", keep)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise TypeError(f"{name}: expected a number of bytes or None, got {value!r}")
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected a number of bytes of at least 0, got {value}")
        self.memory = memory
        self.keep = keep

    def settle(self, work: Workload) -> Tiled:
        """Return the strategy with the number of bytes of tiles that it will keep for a workload, if K_1 has tiles."""
        if self.keep is not None:
            return self
        least = self._without_tiles(work).bytes
        if self.memory is None:
            free = SHARE * memory_of.available(work.device) - (least - work.resident)
        else:
            free = self.memory - least
            if free < 0:
                raise memory_of.NotEnoughMemory(
                    f"memory: tiled needs at least {memory_of.in_bytes(least)} for {work.n} samples of "
                    f"{work.d} features, got {memory_of.in_bytes(self.memory)}"
                )
            free -= thread_bytes(work.device)
        if not work.first_is_pairwise:
            return self
        return Tiled(self.memory, keep=max(0, min(int(free), self._all_tiles(work))))

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: the kept tiles, and the values of the others at every gradient."""
        base = self._without_tiles(work)
        if not work.first_is_pairwise:
            return base
        settled = self.settle(work)
        assert settled.keep is not None
        every = self._all_tiles(work)
        kept = min(int(settled.keep), every)
        recomputed = 1.0 - kept / every
        rows = size_on(work.device, TILE_ROWS)
        values = work.n**2 / 2 * pair_flops(work.d)
        reading = work.sample_bytes * max(1.0, work.n / rows) / 2
        return base.plus(
            bytes=kept,
            flops=2.0 * work.n**2 * work.sizes[0] + recomputed * values,
            traffic=kept + recomputed * reading,
            setup=values,
        )

    def fixed_features(self, kernel: Explicit, points: Tensor | Rows) -> Gram:
        """Return the operator of explicit features, read in tiles if the samples are in a file."""
        return StreamedFeatures(kernel, points) if isinstance(points, Rows) else super().fixed_features(kernel, points)

    def fixed_pairs(self, kernel: Pairwise, points: Tensor | Rows) -> Gram:
        """Return the tiled operator of the samples."""
        keep = SHARE * memory_of.available(points.device) if self.keep is None else self.keep
        return TiledGram(kernel, points, keep)

    def left(self, work: Workload, needed: int, what: str) -> float | None:
        """Return the bytes that the budget leaves for tiles, or raise an error if it is too small."""
        if self.memory is None:
            return None
        needed += self._tile_bytes(work)
        if needed > self.memory:
            raise memory_of.NotEnoughMemory(
                f"memory: {what} with {work.n} samples of {work.d} features need {memory_of.in_bytes(needed)}, "
                f"got {memory_of.in_bytes(self.memory)}"
            )
        return max(0.0, self.memory - needed - thread_bytes(work.device))

    def describe(self) -> str:
        """Return the name, with the size of the kept tiles."""
        return self.name if self.keep is None else f"tiled, keeping {memory_of.in_bytes(self.keep)} of K_1"

    def _without_tiles(self, work: Workload) -> Cost:
        """Return the cost of everything but the tiles of K_1."""
        base = common(work, samples=not work.on_disk)
        if not work.first_is_pairwise:
            first = first_of_features(work)
            held = feature_blocks(work, work.kernels[0], work.d) + (0 if work.on_disk else first.bytes)
            return base.plus(flops=first.flops, traffic=first.traffic, bytes=held)
        training = base.bytes + self._tile_bytes(work)
        # These follow one another: the bandwidth rule, training, encoding.
        samples = 0 if work.on_disk else work.sample_bytes
        others = samples + max(rule_bytes(work), encoder_bytes(work))
        return replace(base, bytes=max(training, others))

    @staticmethod
    def _tile_bytes(work: Workload) -> int:
        """Return the bytes needed to form a tile."""
        rows = min(work.n, size_on(work.device, TILE_ROWS)) if work.first_is_pairwise else 0
        return work.item * rows * (SAMPLE_COPIES * (work.d + 2) + 2 * rows)

    @staticmethod
    def _all_tiles(work: Workload) -> int:
        """Return the bytes of all tiles on and above the diagonal."""
        rows = min(work.n, size_on(work.device, TILE_ROWS))
        return work.item * work.n * (work.n + rows) // 2
