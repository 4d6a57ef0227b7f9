"""Collective operations over all samples, whether one process holds them or several share them.

Everything that a fit sums, averages, draws or gathers over samples goes through this module. In one process every
function is the plain operation on its rows. While `shared` is active (`drkm.gram.Sharded` activates it for the duration
of a fit) each process has some of the rows, and the functions exchange what is needed with the others. Every process
gets the same bits, which keeps their decisions consistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor

from drkm.files.rows import Rows

#: rows of random numbers per generator; a process draws the blocks that contain its own rows
RANDOM_BLOCK = 1 << 16


class Shards(Protocol):
    """The rows of a sample matrix, distributed over processes in order."""

    #: number of rows of every process
    counts: Sequence[int]
    #: rank of this process
    rank: int
    #: number of processes on this machine, which share its memory
    processes_here: int
    #: whether this process was asked to stop, which `agreed` tells the others
    interrupted: bool

    def total(self, own: Tensor) -> Tensor:
        """Return the sum over processes."""

    def maximum(self, own: Tensor) -> Tensor:
        """Return the maximum over processes, entry by entry."""

    def of_first(self, own: Tensor) -> Tensor:
        """Return the value of the first process."""

    def gather(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the rows of all processes, given how many each has."""

    def ring(self, own: Tensor, blocks: int) -> Iterator[Tensor]:
        """Yield the rows of so many processes in turn, starting with this one."""

    def handed_over(self, block: Tensor, ahead: int) -> Tensor:
        """Give rows to the process so many places ahead, and return those from the process as far behind."""


_current: ContextVar[Shards | None] = ContextVar("drkm shards", default=None)


def current() -> Shards | None:
    """Return how the samples are shared, or None if one process holds them all."""
    return _current.get()


@contextmanager
def shared(shards: Shards | None) -> Iterator[None]:
    """Share the samples inside the block; None is for small matrices that every process holds whole."""
    token = _current.set(shards)
    try:
        yield
    finally:
        _current.reset(token)


def total(own: Tensor) -> Tensor:
    """Return the sum over all samples from the sum over this process's rows."""
    shards = current()
    return own if shards is None else shards.total(own)


def root_sum_square(own: Tensor) -> Tensor:
    """Return norms over all samples from those over this process's rows."""
    shards = current()
    return own if shards is None else shards.total(own.double().square()).sqrt()


def mean(A: Tensor) -> Tensor:
    """Return the mean over all samples."""
    shards = current()
    return A.mean(dim=0) if shards is None else shards.total(A.sum(dim=0)) / samples(len(A))


def samples(rows: int) -> int:
    """Return the number of all samples, given this process's number of rows."""
    shards = current()
    return rows if shards is None else sum(shards.counts)


def most_rows(rows: int) -> int:
    """Return the number of samples of the process with the most, given this process's number of rows."""
    shards = current()
    return rows if shards is None else max(shards.counts)


def processes_on(device: torch.device) -> int:
    """Return how many processes share the memory of a device: on a CPU all of this machine, on a GPU one."""
    shards = current()
    return 1 if shards is None or device.type != "cpu" else shards.processes_here


def offset() -> int:
    """Return the number of samples in the processes before this one."""
    shards = current()
    return 0 if shards is None else sum(shards.counts[: shards.rank])


def gather(A: Tensor, most: int | None = None) -> Tensor:
    """Return the rows of all processes, in order, for blocks of at most `most` rows each."""
    shards = current()
    if shards is None:
        return A
    counts = [count if most is None else min(count, most) for count in shards.counts]
    return shards.gather(A, counts)


def ring(own: Tensor, blocks: int | None = None) -> Iterator[tuple[slice, Tensor]]:
    """Yield the rows of every process with their places among all samples, from those of this process on.

    No process holds more than three blocks besides its own: one in use, which it passes on, one that arrives, and on
    a GPU the last one that it sent. All processes must consume all blocks, or the same number of them.
    """
    shards = current()
    if shards is None:
        yield slice(0, len(own)), own
        return
    stops = torch.tensor(shards.counts).cumsum(0).tolist()
    for step, block in enumerate(shards.ring(own, len(stops) if blocks is None else blocks)):
        stop = stops[(shards.rank + step) % len(stops)]
        yield slice(stop - len(block), stop), block


def handed_over(block: Tensor, ahead: int) -> Tensor:
    """Give rows that belong to the process so many places ahead to it, and return our rows from as far behind."""
    shards = current()
    return block if shards is None else shards.handed_over(block, ahead)


def own_rows(A: Tensor, most: int | None = None) -> Tensor:
    """Return this process's rows from the result of `gather`."""
    shards = current()
    if shards is None:
        return A
    counts = [count if most is None else min(count, most) for count in shards.counts]
    return A[sum(counts[: shards.rank]) :][: counts[shards.rank]]


def rows_at(A: Tensor | Rows, index: Tensor) -> Tensor:
    """Return samples by their index among all, in every process."""
    if current() is None:
        return A[index]
    local = index - offset()
    here = (local >= 0) & (local < len(A))
    chosen = torch.zeros(len(index), *A.shape[1:], dtype=A.dtype, device=A.device)
    chosen[here] = A[local[here]]
    # Every row is nonzero in only one process, so that the sum is exact.
    return total(chosen)


def spread_rows(A: Tensor | Rows, most: int) -> Tensor:
    """Return at most `most` evenly spaced samples of all, in every process."""
    n = samples(len(A))
    if n <= most:
        return gather(A[:])
    return rows_at(A, _evenly(n, most).to(A.device))


def spread_here(A: Tensor | Rows, most: int) -> Tensor:
    """Return the rows of `spread_rows` that this process has."""
    n = samples(len(A))
    if n <= most:
        return A[:]
    index = _evenly(n, most).to(A.device) - offset()
    return A[index[(index >= 0) & (index < len(A))]]


def _evenly(n: int, most: int) -> Tensor:
    # In float64: float32 cannot count beyond 2²⁴.
    return torch.linspace(0, n - 1, most, dtype=torch.float64).round().long()


def of_first(own: Tensor) -> Tensor:
    """Return the value of the first process, for small results that rounding might make different elsewhere."""
    shards = current()
    return own if shards is None else shards.of_first(own)


def agreed(number: float) -> float:
    """Return the maximum over processes, for clocks and decisions that all must share."""
    shards = current()
    return number if shards is None else float(shards.maximum(torch.tensor([number], dtype=torch.float64)))


def is_first() -> bool:
    """Return whether this process writes what all share."""
    shards = current()
    return shards is None or shards.rank == 0


def interrupted() -> bool:
    """Return whether this process was asked to stop while others depend on it."""
    shards = current()
    return shards is not None and shards.interrupted


def eye(rows: int, columns: int, *, like: Tensor | Rows) -> Tensor:
    """Return this process's rows of the identity matrix of all samples, cut to some columns."""
    out = torch.zeros(rows, columns, dtype=like.dtype, device=like.device)
    if offset() < columns:
        out.diagonal(offset()).fill_(1.0)
    return out


def normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Return this process's rows of a standard normal matrix that does not depend on how rows are shared."""
    n, begin = samples(rows), offset()
    if n <= RANDOM_BLOCK:
        return torch.randn(n, columns, generator=generator, dtype=torch.float64)[begin : begin + rows]
    seed = int(torch.randint(1 << 62, (1,), generator=generator))
    parts = []
    for block in range(begin // RANDOM_BLOCK, (begin + rows - 1) // RANDOM_BLOCK + 1):
        first = block * RANDOM_BLOCK
        own = torch.Generator().manual_seed(seed + block)
        draw = torch.randn(min(RANDOM_BLOCK, n - first), columns, generator=own, dtype=torch.float64)
        parts.append(draw[max(begin - first, 0) : begin + rows - first])
    return torch.cat(parts)
