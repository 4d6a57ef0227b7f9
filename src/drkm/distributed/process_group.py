"""Process groups that share the samples of a fit by `torch.distributed`: gloo between CPUs, NCCL between GPUs."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows

log = logging.getLogger("drkm.gram")

#: in place of a number of rows: the process takes no part
WITHDRAWN = -1
#: maximum seconds that such a process waits for the others to listen
PATIENCE = 60.0


class ProcessLost(RuntimeError):
    """Another process of the group ended or stopped answering, so that this one cannot continue."""


class ProcessShards:
    """The operations that `drkm.distributed.collectives` needs, on a process group.

    Parameters
    ----------
    group : ProcessGroup, optional
        The group that shares the samples; by default all of `torch.distributed`, in a group made for this purpose.
    rows : int
        Number of samples that this process holds.
    device : torch.device
        Device on which sums are exchanged: between GPUs by NCCL, else by gloo.
    timeout : float
        Seconds after which a process that does not answer counts as lost.
    checkpoint : str
        Advice on resuming in the error message about a lost process.
    """

    def __init__(self, group: Any, rows: int, device: torch.device, timeout: float, checkpoint: str):
        if not dist.is_available() or not dist.is_initialized():
            raise ValueError(
                'gram: "sharded" needs a process group, call torch.distributed.init_process_group() first '
                "and start the processes with torchrun"
            )
        self.device = device
        self.checkpoint = checkpoint
        #: whether this process was asked to stop; the next collective decision tells the others
        self.interrupted = False
        #: number of exchanges, and of bytes that this process contributed
        self.exchanges, self.bytes = 0, 0
        #: the tensors of the last exchanges, held until a group of our own is gone: if the group held the last
        #: reference, its thread would wait for the interpreter's lock, and the interpreter, which ends the group, for
        #: the thread
        self._exchanged: deque[tuple[Any, ...]] = deque(maxlen=2)
        #: the tensors of moves that are under way, which must outlive an error, by the number of the exchange
        self._moving: dict[int, tuple[Tensor, Tensor]] = {}
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self._group, self._is_own = group, group is None
        if self._is_own:
            # It has our timeout, and closing it after a failure tells the others in any state.
            backend = "nccl" if device.type == "cuda" else "gloo"
            self._group = self._carefully(dist.new_group, timeout=timedelta(seconds=timeout), backend=backend)
        # Processes with one host name share its memory; a number can be exchanged.
        machine = zlib.crc32(socket.gethostname().encode())
        everyone = self.gather(torch.tensor([[rows, machine]]), [1] * self.size)
        self.counts: Sequence[int] = everyone[:, 0].tolist()
        self.processes_here = int((everyone[:, 1] == machine).sum())
        if WITHDRAWN in self.counts:
            self.close()
            other = self.counts.index(WITHDRAWN)
            raise ValueError(
                f"gram: process {other} of {self.size} was given samples that it cannot take, and says why; no process "
                "fits without them"
            )

    def total(self, own: Tensor) -> Tensor:
        """Return the sum over processes: the same bits everywhere, because every entry is summed in one process."""
        return self._reduce(own, dist.ReduceOp.SUM)

    def maximum(self, own: Tensor) -> Tensor:
        """Return the maximum over processes, entry by entry."""
        return self._reduce(own, dist.ReduceOp.MAX)

    def of_first(self, own: Tensor) -> Tensor:
        """Return the value of the first process."""
        sent = self._copy(own)
        self._exchange(dist.broadcast, sent, src=dist.get_process_group_ranks(self._group)[0])
        return sent.to(own.device)

    def gather(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the rows of all processes, given how many each has."""
        # Into their places: samples of all processes may take more memory than all that a process has of its own.
        out = torch.empty(sum(counts), *own.shape[1:], dtype=own.dtype, device=self.device)
        parts = list(out.split(list(counts)))
        if len(set(counts)) == 1:
            self._exchange(dist.all_gather, parts, own.to(self.device).contiguous())
            return out.to(own.device)
        parts[self.rank].copy_(own)
        for source, part in zip(dist.get_process_group_ranks(self._group), parts, strict=True):
            self._exchange(dist.broadcast, part, src=source)
        return out.to(own.device)

    def ring(self, own: Tensor, blocks: int) -> Iterator[Tensor]:
        """Yield the rows of so many processes, starting with this one; each block is passed on while it is used."""
        block = own.to(self.device).contiguous()
        for step in range(1, blocks):
            arriving = block.new_empty(self.counts[(self.rank + step) % self.size], *block.shape[1:])
            under_way = self._move(block, -1, arriving)
            yield block.to(own.device)
            self._finish(*under_way)
            # What it still holds is a block that was sent.
            del under_way
            block = arriving
        yield block.to(own.device)

    def handed_over(self, block: Tensor, ahead: int) -> Tensor:
        """Give rows to the process so many places ahead, and return those from the process as far behind."""
        sent = block.to(self.device).contiguous()
        arriving = sent.new_empty(self.counts[self.rank], *block.shape[1:])
        self._finish(*self._move(sent, ahead, arriving))
        return arriving.to(block.device)

    def _move(self, block: Tensor, ahead: int, arriving: Tensor) -> tuple[int, list[Any]]:
        """Begin to send a block so many places ahead, and to receive one from as far behind."""
        ranks = dist.get_process_group_ranks(self._group)
        self.exchanges += 1
        self.bytes += block.nbytes
        self._moving[self.exchanges] = block, arriving
        moves = [
            dist.P2POp(dist.isend, block, ranks[(self.rank + ahead) % self.size], group=self._group),
            dist.P2POp(dist.irecv, arriving, ranks[(self.rank - ahead) % self.size], group=self._group),
        ]
        return self.exchanges, self._carefully(dist.batch_isend_irecv, moves)

    def _finish(self, number: int, under_way: list[Any]) -> None:
        """Wait until blocks have moved."""
        for move in under_way:
            self._carefully(move.wait)
        self._carefully(self._wait)
        moved = self._moving.pop(number)
        # Only a GPU's group remembers moves that are done; on CPUs their memory would be missed at the peak of a fit.
        if self.device.type == "cuda":
            self._exchanged.append(moved)

    def _wait(self) -> None:
        """Wait for the GPU, where exchanges only begin, in Python: inside CUDA no signal would reach this process."""
        if self.device.type == "cuda":
            done = torch.cuda.Event()
            done.record()
            while not done.query():
                time.sleep(0)

    def close(self) -> None:
        """Leave a group of our own; processes that still wait for this one learn that it is gone."""
        if not self._is_own:
            return
        group, self._group = self._group, None
        with suppress(RuntimeError, ValueError, AssertionError):
            dist.destroy_process_group(group)

    def lost(self, reason: str) -> ProcessLost:
        """Return the error that every remaining process ends with."""
        return ProcessLost(
            f"gram: process {self.rank} of {self.size} cannot go on, because another process of the group was lost "
            f"({reason}); {self.checkpoint}"
        )

    def _reduce(self, own: Tensor, operation: Any) -> Tensor:
        sent = self._copy(own)
        self._exchange(dist.all_reduce, sent, op=operation)
        return sent.to(own.device)

    def _exchange(self, collective: Callable[..., Any], *tensors: Any, **options: Any) -> None:
        self.exchanges += 1
        self.bytes += tensors[-1].nbytes
        self._exchanged.append(tensors)
        self._carefully(collective, *tensors, group=self._group, **options)
        self._carefully(self._wait)

    def _copy(self, own: Tensor) -> Tensor:
        """Return a copy on the device of the group that may be overwritten."""
        sent = own.to(self.device)
        return sent.clone(memory_format=torch.contiguous_format) if sent is own else sent.contiguous()

    def _carefully(self, collective: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return collective(*arguments, **options)
        except RuntimeError as error:
            if isinstance(error, ProcessLost):
                raise
            raise self.lost(_reason(error)) from None


def _reason(error: RuntimeError) -> str:
    """Return the first sentence of the backend's message, without its source location."""
    first = (str(error).splitlines() or [""])[0]
    return re.sub(r"\[/[^]]*\]\s*", "", first).split(". ")[0].strip().rstrip(".") or "no answer"


@contextmanager
def sharing(
    group: Any, X: Tensor | Rows, settings: str, *, timeout: float, checkpoint: str | os.PathLike[str] | None
) -> Iterator[None]:
    """Share the samples of a fit inside the block; X are the rows of this process.

    Parameters
    ----------
    group : ProcessGroup, optional
    X : Tensor or Rows, of shape (rows, d)
    settings : str
        Hexadecimal digest of what must be the same in all processes.
    timeout : float
    checkpoint : path, optional
        Path of the fit's checkpoint, for the error message about a lost process.
    """
    advice = "there is no checkpoint, pass checkpoint=... to be able to go on"
    if checkpoint is not None:
        advice = f"the last checkpoint is {os.fspath(checkpoint)}, fit again to go on from it"
    shards = ProcessShards(group, len(X), X.device, timeout, advice)
    try:
        _check_alike(shards, X, settings)
        with _signals(shards), collectives.shared(shards):
            yield
            # No process leaves before all have what they need from the others.
            shards.total(torch.zeros(1))
        log.info("gram: %d exchanges, %d bytes in all, %d processes", shards.exchanges, shards.bytes, shards.size)
    finally:
        shards.close()


def withdraw(group: Any, timeout: float) -> None:
    """Tell the other processes of a fit that this one takes no part, if they listen."""
    with suppress(ValueError, RuntimeError):
        ProcessShards(group, WITHDRAWN, torch.device("cpu"), min(timeout, PATIENCE), "").close()


def _check_alike(shards: ProcessShards, X: Tensor | Rows, settings: str) -> None:
    """Raise an error in all processes if their fits are not the same."""
    digest = [int(settings[i : i + 8], 16) for i in range(0, 32, 8)]
    mine = torch.tensor([[X.shape[1], X.dtype.itemsize, *digest]])
    everyone = shards.gather(mine, [1] * shards.size)
    for row, what in (
        (everyone[:, :1], "numbers of features"),
        (everyone[:, 1:2], "precisions"),
        (everyone[:, 2:], "parameters"),
    ):
        if (row != row[0]).any():
            raise ValueError(f"gram: the processes of a sharded fit were given different {what}, they must be the same")


@contextmanager
def _signals(shards: ProcessShards) -> Iterator[None]:
    """Turn Ctrl-C into a stop that all processes agree on, and torchrun's SIGTERM into the error of a lost process.

    A second Ctrl-C ends this process immediately. Handlers that the caller has set for SIGTERM stay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signal.SIGINT: signal.getsignal(signal.SIGINT), signal.SIGTERM: signal.getsignal(signal.SIGTERM)}

    def interrupt(number: int, frame: Any) -> None:
        if shards.interrupted:
            # Not KeyboardInterrupt: a solver would end with the best point so far, and leave the others waiting.
            raise SystemExit(
                f"gram: process {shards.rank} of {shards.size} was interrupted a second time; {shards.checkpoint}"
            )
        shards.interrupted = True

    def end(number: int, frame: Any) -> None:
        raise shards.lost("this one was told to end, as torchrun does when another one fails")

    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    if before[signal.SIGTERM] is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
