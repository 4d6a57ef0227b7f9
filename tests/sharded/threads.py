"""Threads in place of processes: the exchanges of a sharded fit without a process group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from drkm.distributed import collectives


class ThreadShards:
    """One of several threads that hold the rows of a matrix; all see each other's contributions."""

    def __init__(self, counts: Sequence[int], rank: int, board: list[Any], barrier: threading.Barrier):
        self.counts, self.rank, self.interrupted = list(counts), rank, False
        self.processes_here = len(self.counts)
        self._board, self._barrier = board, barrier
        #: numbers that were passed around
        self.passed = 0

    def total(self, own: Tensor) -> Tensor:
        return torch.stack(self._everyone(own)).sum(dim=0)

    def maximum(self, own: Tensor) -> Tensor:
        return torch.stack(self._everyone(own)).amax(dim=0)

    def of_first(self, own: Tensor) -> Tensor:
        return self._everyone(own)[0]

    def gather(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        parts = self._everyone(own)
        assert [len(part) for part in parts] == list(counts)
        return torch.cat(parts)

    def ring(self, own: Tensor, blocks: int) -> Iterator[Tensor]:
        self.passed += own.numel()
        parts = self._everyone(own)
        yield from (parts[(self.rank + step) % len(parts)] for step in range(blocks))

    def handed_over(self, block: Tensor, ahead: int) -> Tensor:
        return self._everyone(block)[self.rank - ahead]

    def _everyone(self, own: Tensor) -> list[Tensor]:
        self._board[self.rank] = own.clone()
        self._barrier.wait(timeout=30)
        parts = list(self._board)
        self._barrier.wait(timeout=30)
        return parts


def in_shards(counts: Sequence[int], work: Callable[..., Any], *matrices: Tensor) -> list[Any]:
    """Return the results of `work` on the rows of the matrices in each of several threads that share them."""
    board: list[Any] = [None] * len(counts)
    barrier = threading.Barrier(len(counts))
    starts = [sum(counts[:rank]) for rank in range(len(counts))]

    def one(rank: int) -> Any:
        rows = slice(starts[rank], starts[rank] + counts[rank])
        with collectives.shared(ThreadShards(counts, rank, board, barrier)):
            return work(*(matrix[rows] for matrix in matrices))

    with ThreadPoolExecutor(len(counts)) as pool:
        return [future.result() for future in [pool.submit(one, rank) for rank in range(len(counts))]]
