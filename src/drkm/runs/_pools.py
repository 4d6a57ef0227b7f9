"""Pools that compute runs: in this process, or in worker processes that may die without affecting the others."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection as channels
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Protocol

from tqdm import tqdm

from drkm.machine import interrupts
from drkm.runs.attempt import ONE_THREAD, Attempt, attempt
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import KeyedRun, TaskTable, table_at

#: maximum number of consecutive workers that die before they are ready
_FALSE_STARTS = 3
_READY = "ready"

Ended = tuple[str, Attempt]


class Pool(Protocol):
    """A pool for runs, used by one runner from one thread."""

    def free(self) -> int:
        """Return how many runs can be submitted now."""

    def submit(self, run: KeyedRun) -> None:
        """Submit a run."""

    def collect(self, timeout: float | None) -> list[Ended]:
        """Wait until a run ends, at most `timeout` seconds, and return what has ended, by key."""

    def close(self) -> None:
        """Drop all runs in progress."""


class HerePool:
    """This process computes, one run at a time."""

    def __init__(self, tasks: TaskTable) -> None:
        # Imported here, because worker processes begin with this module, and torch takes seconds to import.
        from drkm.machine.threads import one_thread_everywhere

        self._tasks = tasks
        self._run: KeyedRun | None = None
        self._pinned = one_thread_everywhere()
        self._pinned.__enter__()

    def free(self) -> int:
        """Return 1 unless a run waits for `collect`."""
        return int(self._run is None)

    def submit(self, run: KeyedRun) -> None:
        """Submit a run."""
        self._run = run

    def collect(self, timeout: float | None) -> list[Ended]:
        """Compute the run."""
        if self._run is None:
            return []
        run, self._run = self._run, None
        # An interrupted fit is not a result of the run.
        with interrupts.passed_on():
            return [(run.key, attempt(self._tasks, run.configuration))]

    def close(self) -> None:
        """Restore the thread limit of this process."""
        self._pinned.__exit__(None, None, None)


@dataclass
class _Worker:
    process: BaseProcess
    channel: Connection
    ready: bool = False
    run: KeyedRun | None = None

    def give(self, run: KeyedRun) -> None:
        """Send it a run; a worker that is still starting finds it when it is ready."""
        self.run = run
        # A worker that has died is noticed when its channel is read.
        with suppress(OSError):
            self.channel.send(run.configuration.canonical())


class ProcessPool:
    """Worker processes with one thread and one run at a time each; dead ones are replaced.

    They are spawned, not forked: a forked process cannot use CUDA, and inherits the locks of libraries.

    Parameters
    ----------
    tasks : TaskTable
        Task table, which the workers import by its reference.
    jobs : int
        Number of processes.
    """

    def __init__(self, tasks: TaskTable, jobs: int) -> None:
        self._reference = tasks.reference
        # Report a wrong reference, an error of the caller, before it kills three workers.
        table_at(self._reference)
        self._context = get_context("spawn")
        self._false_starts = 0
        self._workers: list[_Worker] = []
        try:
            for _ in range(jobs):
                self._workers.append(self._hire())
        except BaseException:
            self.close()
            raise

    def free(self) -> int:
        """Return the number of idle workers."""
        return sum(worker.run is None for worker in self._workers)

    def submit(self, run: KeyedRun) -> None:
        """Send a run to an idle worker."""
        next(worker for worker in self._workers if worker.run is None).give(run)

    def collect(self, timeout: float | None) -> list[Ended]:
        """Wait until a run ends, or its worker dies."""
        ready = set(channels.wait([worker.channel for worker in self._workers], timeout))
        ended: list[Ended] = []
        for place, worker in enumerate(self._workers):
            if worker.channel not in ready:
                continue
            try:
                message = worker.channel.recv()
            except (EOFError, OSError):
                self._workers[place] = self._replace(worker)
                if worker.run is None:
                    continue
                if worker.ready:
                    ended.append((worker.run.key, Attempt("lost", traceback=_cause_of_death(worker.process))))
                else:
                    # The run had not begun: the death of the worker says nothing about it.
                    self._workers[place].give(worker.run)
                continue
            if message == _READY:
                worker.ready, self._false_starts = True, 0
            elif worker.run is not None:
                ended.append((worker.run.key, message))
                worker.run = None
        return ended

    def close(self) -> None:
        """Terminate all workers."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.channel.close()
            worker.process.close()
        self._workers = []

    def _hire(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._reference), name="drkm-worker", daemon=True)
        with _environment(ONE_THREAD):
            process.start()
        # With all other copies of its end closed, a dying worker closes the channel.
        theirs.close()
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> _Worker:
        worker.channel.close()
        worker.process.join()
        self._false_starts += not worker.ready
        if self._false_starts >= _FALSE_STARTS:
            raise ChildProcessError(
                f"jobs: worker processes die as they start ({_cause_of_death(worker.process)}); a script that starts "
                "them needs 'if __name__ == \"__main__\":' around what it does, and jobs=1 does without them"
            )
        return self._hire()


def _cause_of_death(process: BaseProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        # Real-time signals have no names.
        name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
        return f"the worker process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"the worker process ended with exit code {code}"


def _work(channel: Connection, reference: str) -> None:
    """Main loop of a worker: compute the runs that it receives, until the runner closes the channel."""
    # Ctrl-C reaches the whole process group; the runner decides how to react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Otherwise tqdm's lock is a system semaphore, which a killed worker leaves behind.
    tqdm.set_lock(threading.RLock())
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    tasks = table_at(reference)
    try:
        channel.send(_READY)
        while True:
            channel.send(attempt(tasks, Configuration.from_json(channel.recv())))
    except (EOFError, OSError):
        return


def _leave_with_parent() -> None:
    """Exit when the runner ends, because nobody would record later results."""
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started inside the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
