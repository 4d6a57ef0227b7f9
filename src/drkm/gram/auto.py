"""The choice of a strategy by the size of the problem and the available memory, and the check that it fits."""

from __future__ import annotations

import logging

from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.gram.base import NAMES, Gram, MovingGram, Strategy
from drkm.gram.cost import Cost, Workload
from drkm.gram.dense import Dense
from drkm.gram.fused import Fused
from drkm.gram.tiled import Tiled
from drkm.gram.tiles import tile_rows
from drkm.kernels import Kernel
from drkm.machine import memory

log = logging.getLogger("drkm.gram")

#: strategies that "auto" tries on each kind of device, where tiles are not faster: the exact ones, the fastest first
ORDER: dict[str, tuple[type[Strategy], ...]] = {"cpu": (Dense, Tiled), "cuda": (Fused, Dense, Tiled)}
#: share of the available memory that a strategy may need to be chosen; an explicit choice may use all of it
SHARE = 0.7


class Auto(Strategy):
    """Choose the first strategy that supports the kernels and fits into memory; the last one if none fits."""

    name = "auto"

    def settle(self, work: Workload) -> Strategy:
        """Return the strategy chosen for this workload."""
        chosen: Strategy = self
        for kind in _order(work):
            candidate = kind()
            if candidate.serves(work):
                chosen = candidate.settle(work)
                if fits(chosen, work):
                    break
        return chosen

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Raise an error: `settle` must choose a strategy first."""
        raise TypeError("gram: auto forms no Gram matrix itself, call settle(workload) first")

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Raise an error: `settle` must choose a strategy first."""
        raise TypeError("gram: auto forms no Gram matrix itself, call settle(workload) first")


def _order(work: Workload) -> tuple[type[Strategy], ...]:
    if work.device.type == "cpu" and work.first_is_pairwise and not work.on_disk and work.n > tile_rows(work.device):
        # Kept tiles are one half of K_1, and products with them take two thirds to all of the time of those with K_1.
        return (Tiled,)
    return ORDER.get(work.device.type, ORDER["cpu"])


def fits(strategy: Strategy, work: Workload) -> bool:
    """Whether a strategy leaves so much memory to others that "auto" may choose it."""
    return memory.fits(strategy.cost(work).bytes - work.resident, work.device, SHARE)


def settle(strategy: Strategy, work: Workload) -> tuple[Strategy, Cost]:
    """Return the strategy that will be used and its cost, and log them before anything is allocated.

    Raises
    ------
    NotEnoughMemory
        If it does not fit. The error gives the needed and the available memory and a strategy that would fit.
    """
    chosen, cost = check(strategy, work)
    log.info("gram: %s for %d samples, %s", chosen.describe(), work.n, cost.describe())
    return chosen, cost


def check(strategy: Strategy, work: Workload) -> tuple[Strategy, Cost]:
    """Return what `settle` returns, without logging; raise `NotEnoughMemory` if it does not fit."""
    chosen = strategy.settle(work)
    cost = chosen.cost(work)
    processes = collectives.processes_on(work.device) if strategy.shares else 1
    needed = (cost.bytes - work.resident) * processes
    if not memory.fits(needed, work.device):
        each = f" in each of {processes} processes on this machine, all together," if processes > 1 else ""
        what = f"gram: {chosen.describe()} for {work.n} samples{each}"
        memory.require(needed, work.device, what, _what_fits(work, strategy.shares))
    return chosen, cost


def _what_fits(work: Workload, shares: bool) -> str:
    if shares:
        return "take more machines, fewer samples, or gram=drkm.gram.Sharded(Nystroem(m))"
    for other in (kind() for kind in NAMES.values()):
        if other.serves(work):
            settled = other.settle(work)
            needed = settled.cost(work).bytes - work.resident
            if memory.fits(needed, work.device):
                return f'gram="{settled.name}" would need {memory.in_bytes(needed)}'
    return "none of the operators fits, take fewer samples or a machine with more memory"
