"""The runner of sweeps, which computes the runs that a store does not have yet."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from drkm.machine.background import in_background
from drkm.runs._pools import HerePool, Pool, ProcessPool
from drkm.runs.attempt import Attempt
from drkm.runs.configuration import Configuration
from drkm.runs.lease import LEASE_SECONDS, new_owner
from drkm.runs.store import Store
from drkm.runs.tasks import KeyedRun, TaskTable

#: number of processes that a run may kill before it counts as failed: the first may have been an accident
_DEATHS = 2
#: seconds between checks of runs that another runner holds
_LOOK_EVERY = 0.5


@dataclass(frozen=True)
class Swept:
    """The outcome of a sweep: numbers of runs requested, computed here, and failed here."""

    asked: int
    computed: int
    failed: int

    @property
    def found(self) -> int:
        """Number of runs found in the store or computed by other runners."""
        return self.asked - self.computed - self.failed


def sweep(
    configurations: Iterable[Configuration],
    store: Store,
    *,
    jobs: int = 1,
    dask: str | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    lease_seconds: float = LEASE_SECONDS,
) -> Swept:
    """Compute the runs that the store does not have, and return when all are done or failed.

    Several runners may share a store: each run is leased by one of them, which renews its leases while it lives. Runs
    of another runner are waited for, and taken over if it dies.

    Parameters
    ----------
    configurations : iterable of Configuration
        Runs in the order of computation; duplicates are computed once.
    store : Store
        A store that was opened with the table of their tasks.
    jobs : int
        Number of processes with one thread each; 1 computes in this process, -1 means one per processor.
    dask : str, optional
        Address of a Dask scheduler ("tcp://…") to use instead, or "local" for a cluster of `jobs` processes.
    retry_failed : bool
        Whether to compute failed runs again.
    progress : bool
        Whether to show a progress bar in a terminal.
    lease_seconds : float
        Seconds without renewal after which a runner loses its runs.

    Returns
    -------
    Swept
    """
    jobs = check_jobs(jobs)
    if not lease_seconds > 0:
        raise ValueError(f"lease_seconds: expected a number above 0, got {lease_seconds!r}")
    runs = {run.key: run for run in map(store.tasks.identify, configurations)}
    began = time.time()
    store.check()
    store.release_dead()
    finished = {"done"} if retry_failed else {"done", "failed"}
    states = store.states(runs)
    missing = [run for key, run in runs.items() if states.get(key) not in finished]
    if not missing:
        return Swept(len(runs), 0, 0)
    owner = new_owner()
    bar = tqdm(
        total=len(runs), initial=len(runs) - len(missing), unit="run", disable=None if progress else True, smoothing=0.1
    )
    with _pool(store.tasks, min(jobs, len(missing)), dask) as pool, _heartbeat(store.path, owner, lease_seconds), bar:
        work = _Sweep(store, pool, owner, lease_seconds, began if retry_failed else 0.0, bar)
        try:
            work.through(missing)
        finally:
            store.release(owner)
    return Swept(len(runs), work.computed, work.failed)


def check_jobs(jobs: Any) -> int:
    """Return the number of processes, or raise an error that says what is allowed."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or (jobs < 1 and jobs != -1):
        raise ValueError(f"jobs: expected a number of processes, or -1 for one per processor, got {jobs!r}")
    if jobs > 0:
        return jobs
    # The processors available to this process, if the system knows: a container often has fewer than the machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Sweep:
    """The loop of a runner: lease and submit runs, wait, record."""

    def __init__(
        self, store: Store, pool: Pool, owner: str, lease_seconds: float, retry_before: float, bar: tqdm
    ) -> None:
        self.store, self.pool, self.owner = store, pool, owner
        self.lease_seconds, self.retry_before, self.bar = lease_seconds, retry_before, bar
        self.computed = self.failed = 0
        self.ahead: deque[KeyedRun] = deque()
        #: leased here, to be computed again
        self.again: deque[KeyedRun] = deque()
        self.running: dict[str, KeyedRun] = {}
        #: leased by another runner
        self.held: dict[str, KeyedRun] = {}
        self.deaths: Counter[str] = Counter()

    def through(self, runs: Iterable[KeyedRun]) -> None:
        """Process the runs until all are done or failed, here or elsewhere."""
        self.ahead.extend(runs)
        while self.ahead or self.again or self.running or self.held:
            self._hand_out()
            if self.running:
                idle = self.held and not self.ahead and self.pool.free()
                for key, attempt in self.pool.collect(_LOOK_EVERY if idle else None):
                    self._record(self.running.pop(key), attempt)
            elif self.held:
                time.sleep(_LOOK_EVERY)
            if self.held and not self.ahead:
                self._look_at_held()

    def _hand_out(self) -> None:
        while self.pool.free() and (self.again or self.ahead):
            if self.again:
                run = self.again.popleft()
            else:
                run = self.ahead.popleft()
                if not self.store.claim(run, self.owner, self.lease_seconds, retry_before=self.retry_before):
                    self.held[run.key] = run
                    continue
            self.running[run.key] = run
            self.pool.submit(run)

    def _record(self, run: KeyedRun, attempt: Attempt) -> None:
        if attempt.status == "lost":
            self.deaths[run.key] += 1
            if self.deaths[run.key] < _DEATHS:
                self.again.append(run)
                return
            attempt = Attempt("failed", traceback=f"{attempt.traceback}, as was the one before it\n")
        self.store.finish(run.key, self.owner, attempt)
        self.computed += attempt.status == "done"
        self.failed += attempt.status == "failed"
        if self.failed:
            self.bar.set_postfix(failed=self.failed, refresh=False)
        self.bar.update()

    def _look_at_held(self) -> None:
        self.store.release_dead()
        states = self.store.states(self.held)
        for key, run in list(self.held.items()):
            state = states.get(key)
            if state in ("done", "failed"):
                self.bar.update()
            elif state == "leased":
                continue
            else:
                self.ahead.append(run)
            del self.held[key]


@contextmanager
def _pool(tasks: TaskTable, jobs: int, dask: str | None) -> Iterator[Pool]:
    pool: Pool
    if dask is not None:
        from drkm.runs.cluster import DaskPool

        pool = DaskPool(tasks, dask, jobs)
    elif jobs == 1:
        pool = HerePool(tasks)
    else:
        pool = ProcessPool(tasks, jobs)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def _heartbeat(path: Path, owner: str, seconds: float) -> Iterator[None]:
    """Renew the leases of a runner from a thread, while the runner waits for something else."""

    def beat(over: threading.Event) -> None:
        with Store(path) as store:
            while not over.wait(seconds / 4):
                try:
                    store.renew(owner, seconds)
                except (OSError, ValueError):
                    # For instance a full disk or a damaged file, which the runner will meet and report too.
                    continue

    with in_background(beat, "drkm-heartbeat"):
        yield
