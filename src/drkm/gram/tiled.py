"""The strategy `Tiled`: keep the tiles of K_1 that fit into memory, and recompute the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from drkm.files.rows import Rows
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
from drkm.gram.tiled_gram import TiledGram, half_bytes, tile_bytes
from drkm.gram.tiles import tile_rows
from drkm.kernels import Explicit, Pairwise
from drkm.machine import memory as memory_of

#: share of the available memory that is used without an explicit budget
SHARE = 0.5


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
        return Tiled(self.memory, keep=max(0, min(int(free), half_bytes(work))))

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: the kept tiles, and the values of the others at every gradient."""
        base = self._without_tiles(work)
        if not work.first_is_pairwise:
            return base
        settled = self.settle(work)
        assert settled.keep is not None
        every = half_bytes(work)
        kept = min(int(settled.keep), every)
        recomputed = 1.0 - kept / every
        rows = tile_rows(work.device)
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
        needed += tile_bytes(work)
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
        training = base.bytes + tile_bytes(work)
        # These follow one another: the bandwidth rule, training, encoding.
        samples = 0 if work.on_disk else work.sample_bytes
        others = samples + max(rule_bytes(work), encoder_bytes(work))
        return replace(base, bytes=max(training, others))
