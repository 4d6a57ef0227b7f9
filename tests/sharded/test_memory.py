"""The memory of processes that share samples: what they keep of K_1, and what they say that they need."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from drkm.gram import Dense, NotEnoughMemory, Sharded, Tiled, Workload, check
from drkm.gram.tiled import SHARE
from drkm.kernels import RBF
from drkm.machine import memory
from sharded.threads import in_shards

FEATURES = 300


def work_of(rows: Tensor) -> Workload:
    return Workload(len(rows), FEATURES, (5,), (RBF(1.0),))


def samples(n: int) -> Tensor:
    return torch.zeros(n, 1, dtype=torch.float64)


def test_processes_on_one_machine_share_the_available_memory(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 700_000_000)
    strategies = in_shards((5000, 5000), lambda rows: Sharded().settle(work_of(rows)), samples(10_000))
    kept = [strategy.inner.keep for strategy in strategies]
    assert all(kept)
    assert sum(kept) < SHARE * 700_000_000


def test_what_each_process_needs_has_to_be_available_for_all(monkeypatch):
    needed = in_shards((500, 500), lambda rows: Sharded(Dense()).cost(work_of(rows)).bytes, samples(1000))
    monkeypatch.setattr(memory, "TRIFLE", 0)
    monkeypatch.setattr(memory, "available", lambda device: 1.5 * max(needed))
    with pytest.raises(NotEnoughMemory, match="in each of 2 processes on this machine, all together, needs"):
        in_shards((500, 500), lambda rows: check(Sharded(Dense()), work_of(rows)), samples(1000))


def test_a_budget_that_is_too_small_is_refused():
    with pytest.raises(NotEnoughMemory, match=r"memory: each process needs at least .* for 500 samples of 300"):
        in_shards((500, 500), lambda rows: Sharded(Tiled(memory=1e6)).settle(work_of(rows)), samples(1000))


def test_a_process_with_few_samples_counts_those_that_pass_by():
    def needed(rows: Tensor) -> int:
        return Sharded(Tiled(keep=0)).cost(work_of(rows)).bytes

    few, most = in_shards((1, 4999), needed, samples(5000))
    assert few > 3 * 4999 * FEATURES * 8
    assert most > few
