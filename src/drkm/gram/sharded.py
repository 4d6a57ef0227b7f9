"""The strategy `Sharded`: each process holds some rows of X and H, and sums over samples are exchanged."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch.distributed as dist
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory
from drkm.gram import fused, split
from drkm.gram.base import Gram, MovingGram, Strategy, register
from drkm.gram.cost import Cost, Workload, common, first_of_features, gathered_bytes, pair_flops
from drkm.gram.fused import Fused
from drkm.gram.ring import RingGram, RingRows, shared_entries
from drkm.gram.ring_split import product_bytes, ring_split
from drkm.gram.split import Split
from drkm.gram.tiled import SHARE, Tiled
from drkm.gram.tiled_gram import half_entries, tile_bytes
from drkm.gram.tiles import tile_rows
from drkm.kernels import Kernel
from drkm.machine import memory
from drkm.validation import checks

#: blocks of samples that a process holds during a product: one in use, one that arrives, on a GPU the last one that it
#: sent, and parts of them while tiles are formed
PASSED = 4


@register
@dataclass(frozen=True)
class Sharded(Strategy):
    """Distribute the rows of Gram matrices over the processes of a group, exactly or with explicit features.

    Every process passes its own rows to `fit` and gets the codes of those rows; all other results of a fit are the same
    in all processes. For an exact product KA, blocks of A, and of the samples if K_1 is not kept, circulate among the
    processes. A product ΦΦᵀA of features needs ΦᵀA (one row per feature, one column per component), summed over
    processes; no exchange of an iteration grows with the number of samples.

    Parameters
    ----------
    inner : Strategy
        What each process computes for its own rows. `Tiled()` is exact and keeps as many tiles of K_1 as its memory
        allows, or recomputes them on the tensor cores of a GPU where this is faster. `Tiled(keep=...)` and `Dense()`
        are exact and keep what they say; `Nystroem` and `Fourier` use features, for more samples.
    group : torch.distributed.ProcessGroup, optional
        The group that shares the samples; by default all of `torch.distributed`, in a group made for each fit.
    timeout : float
        Seconds after which a process that does not answer counts as lost; a given group has its own timeout.
    """

    inner: Strategy = field(default_factory=Tiled)
    group: Any = field(default=None, repr=False)
    timeout: float = 1800.0

    name = "sharded"
    shares = True

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Strategy):
            raise TypeError(f"inner: expected a drkm.gram object, got {self.inner!r}")
        checks.number("timeout", self.timeout)

    def serves(self, work: Workload) -> bool:
        """Whether `torch.distributed` is initialised, and the kernels can be shared."""
        return dist.is_available() and dist.is_initialized() and self.inner.serves(work)

    def settle(self, work: Workload) -> Sharded:
        """Return the strategy with how an exact `inner` forms K_1: kept, as many bytes as fit, or recomputed."""
        if isinstance(self.inner, Fused):
            return replace(self, inner=self.inner.first or Tiled()).settle(work)
        # Features are read in tiles too, and have no K_1 to keep.
        if not (self.inner.is_exact and self.inner.reads_tiles and work.first_is_pairwise):
            return self
        tiles = Tiled(getattr(self.inner, "memory", None), keep=self._kept(work))
        if self._recomputes(work):
            return replace(self, inner=Split(tiles))
        self._check_budget(work)
        return replace(self, inner=tiles)

    def cost(self, work: Workload) -> Cost:
        """Return the cost of this process's rows."""
        if not self.inner.is_exact:
            return self.inner.cost(work)
        base, n = common(work), collectives.samples(work.n)
        base = replace(base, flops=base.flops * n / work.n)
        if not work.first_is_pairwise:
            return base.plus(**vars(first_of_features(work)))
        pairs = float(work.n * n)
        if isinstance(self.settle(work).inner, Split):
            flops = pairs * (pair_flops(work.d) + 2.0 * work.sizes[0])
            return base.plus(bytes=product_bytes(work), flops=flops, traffic=float(n * work.d * work.item))
        kept = self._kept(work)
        values = pairs / 2 * pair_flops(work.d)
        return base.plus(
            bytes=kept + tile_bytes(work) + _passed_bytes(work),
            flops=pairs * 2.0 * work.sizes[0] + (1.0 - kept / _tiles(work)) * values,
            traffic=float(kept),
            setup=values,
        )

    def _kept(self, work: Workload) -> int:
        """Return the bytes of K_1 that this process keeps: its tiles, as far as the budget of `inner` allows."""
        every = _tiles(work)
        keep, budget = (getattr(self.inner, name, None) for name in ("keep", "memory"))
        if not self.inner.reads_tiles or keep is not None:
            return every if keep is None else min(int(keep), every)
        if budget is None:
            budget = SHARE * memory.available(work.device) / collectives.processes_on(work.device) + work.resident
        return min(max(0, int(budget - _least_bytes(work))), every)

    def _check_budget(self, work: Workload) -> None:
        """Raise an error if the budget of a process is too small even if it keeps nothing."""
        budget, needed = getattr(self.inner, "memory", None), _least_bytes(work)
        # The budget is that of a fit: afterwards a process that has all samples may need more.
        if budget is not None and budget < needed and collectives.current() is not None:
            raise memory.NotEnoughMemory(
                f"memory: each process needs at least {memory.in_bytes(needed)} for {work.n} samples of {work.d} "
                f"features, got {memory.in_bytes(budget)}"
            )

    def _recomputes(self, work: Workload) -> bool:
        """Whether K_1 is recomputed on tensor cores, by the rule of one GPU, unless the caller says what to keep."""
        is_possible = split.serves(work.kernels[0], work.dtype) and not fused.why_not(work.device)
        if not is_possible or getattr(self.inner, "keep", None) is not None:
            return False
        return split.recomputes(work) or self._kept(work) < _tiles(work)

    def describe(self) -> str:
        """Return a short description."""
        return f"{self.inner.describe()} for the rows of each process"

    def approximate(self, kernel: Kernel, points: Tensor | Rows, *, layer: int) -> Kernel:
        """Return the kernel of the model in a layer: explicit features, or the exact kernel."""
        chosen = self.inner.approximate(kernel, points, layer=layer)
        if not chosen.is_explicit and not (self.inner.is_exact and chosen.is_pairwise):
            raise ValueError(
                f"gram: processes cannot share {type(kernel).__name__} in layer {layer} with "
                f"{type(self.inner).__name__}: Tiled and Dense share kernels of pairs of points, Nystroem and Fourier "
                "turn them into features"
            )
        return chosen

    @property
    def alone(self) -> Strategy:
        """The strategy of a single process, which gives the same result."""
        return self.inner

    def fixed(self, kernel: Any, points: Tensor | Rows) -> Gram:
        """Return the operator of the first layer."""
        if kernel.is_pairwise and self.inner.is_exact and collectives.current() is not None:
            X = in_memory(points)
            # Processes with unequal memory may have settled differently.
            recomputed = ring_split(kernel, X, wanted=isinstance(self.inner, Split))
            tiles = self.inner.tiles if isinstance(self.inner, Split) else self.inner
            keep = getattr(tiles, "keep", None)
            return recomputed or RingRows(kernel, X, math.inf if keep is None else keep)
        return self.inner.fixed(kernel, points)

    def moving(self, kernel: Any, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        if kernel.is_pairwise and self.inner.is_exact and collectives.current() is not None:
            return RingGram(kernel, points)
        return self.inner.moving(kernel, points)

    def sharing(
        self, X: Tensor | Rows, settings: Callable[[], str], checkpoint: str | os.PathLike[str] | None
    ) -> AbstractContextManager[None]:
        """Return the context that shares the rows of X with the other processes during a fit."""
        from drkm.distributed.process_group import sharing

        digest = hashlib.sha256(settings().encode()).hexdigest()
        return sharing(self.group, X, digest, timeout=self.timeout, checkpoint=checkpoint)

    def withdraw(self) -> None:
        """Tell the other processes that this one has no samples for the fit, so that they do not wait for them."""
        from drkm.distributed.process_group import withdraw

        withdraw(self.group, self.timeout)


def _least_bytes(work: Workload) -> int:
    """Return the bytes that a process needs if it keeps no tile of K_1."""
    return common(work).bytes + tile_bytes(work) + _passed_bytes(work)


def _passed_bytes(work: Workload) -> int:
    """Return the bytes of samples that a process holds besides its own: blocks in transit, and at the end all.

    Blocks in transit are as large as those of the process with the most samples.
    """
    most = collectives.most_rows(work.n)
    return work.item * work.d * PASSED * most + gathered_bytes(work)


def _tiles(work: Workload) -> int:
    """Return the bytes of all tiles of K_1 that this process forms."""
    size = (tile_rows(work.device), work.item)
    return work.item * (half_entries(work.n, *size) + shared_entries(work.n, *size))
