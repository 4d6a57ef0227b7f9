"""Runs on a Dask cluster. Results return to the runner, which records them, so that workers need no store."""

from __future__ import annotations

import asyncio
import queue
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

from drkm.runs._pools import Ended
from drkm.runs.attempt import Attempt, attempt
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import KeyedRun, TaskTable, table_at

#: seconds within which a scheduler must answer, and must have a worker
_ANSWER_WITHIN = 4.0
#: seconds within which the result of a finished run must arrive; its worker may have died meanwhile
_ARRIVE_WITHIN = 30.0
#: runs submitted per thread of the cluster: the second one waits at the worker, so that the thread is never idle
_AHEAD = 2
#: seconds between queries of the cluster size
_SIZE_EVERY = 5.0


class DaskPool:
    """An existing cluster, or one of processes on this machine.

    Parameters
    ----------
    tasks : TaskTable
        Task table, which the workers import by its reference.
    address : str
        Address of a scheduler, such as "tcp://10.0.0.1:8786", or "local".
    jobs : int
        Number of processes of a local cluster.
    """

    def __init__(self, tasks: TaskTable, address: str, jobs: int) -> None:
        check_address(address)
        import distributed

        self._reference, self._address = tasks.reference, address
        self._futures: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._size, self._asked = 0, -_SIZE_EVERY
        self._cluster: Any = None
        if address == "local":
            self._cluster = distributed.LocalCluster(
                n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None
            )
        self._client = distributed.Client(self._cluster or address, timeout=_ANSWER_WITHIN, set_as_default=False)
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        """Check that there is a worker."""
        try:
            self._client.wait_for_workers(1, timeout=_ANSWER_WITHIN)
        except TimeoutError as error:
            raise ValueError(f"dask: the scheduler at {self._address!r} has no worker") from error

    def free(self) -> int:
        """Return how many more runs the cluster can hold at its current size."""
        if time.monotonic() - self._asked > _SIZE_EVERY:
            self._size, self._asked = sum(self._client.nthreads().values()), time.monotonic()
        # While all workers are being replaced the cluster is empty: let one run wait for the first of them.
        return _AHEAD * max(self._size, 1) - len(self._futures)

    def submit(self, run: KeyedRun) -> None:
        """Send a run to the cluster."""
        name = f"drkm-{run.key}-{time.time_ns()}"
        words = self._reference, run.configuration.canonical(), run.key
        future = self._client.submit(_attempt_there, *words, key=name, pure=False)
        self._futures[run.key] = future
        future.add_done_callback(lambda _, key=run.key: self._ended.put(key))

    def collect(self, timeout: float | None) -> list[Ended]:
        """Wait for a run to end."""
        try:
            key = self._ended.get(timeout=timeout)
        except queue.Empty:
            return []
        return [(key, self._outcome(self._futures.pop(key)))]

    def _outcome(self, future: Any) -> Attempt:
        try:
            return future.result(timeout=_ARRIVE_WITHIN)
        except (TimeoutError, asyncio.CancelledError, CancelledError) as error:
            if self._client.status != "running":
                raise OSError(
                    f"dask: the scheduler at {self._address!r} is gone; what is finished is in the store"
                ) from error
            future.cancel(force=True)
            return Attempt("lost", traceback="the Dask worker died with the result")
        except Exception as error:
            # An error of Dask itself, such as a run that has killed several workers: `attempt` catches all others.
            return Attempt("failed", traceback=f"{type(error).__name__}: {error}\n")

    def close(self) -> None:
        """Cancel runs that have not begun, and disconnect; shut down a local cluster."""
        if self._futures and self._client.status == "running":
            self._client.cancel(list(self._futures.values()), force=True)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def check_address(address: str) -> None:
    """Refuse an address without a scheduler before a client is made: such a client cannot be closed."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError("dask: needs the extra 'dask': pip install 'drkm[dask]'") from error
    if address == "local":
        return
    # In a separate thread, because a notebook already runs an event loop.
    with ThreadPoolExecutor(1) as thread:
        try:
            kind = thread.submit(asyncio.run, _kind_of_server(address)).result()
        except Exception as error:
            # Another kind of server may answer, with errors of any type.
            raise ValueError(
                f"dask: no scheduler answers at {address!r} (allowed are 'local' and addresses like 'tcp://host:8786')"
            ) from error
    if kind != "Scheduler":
        raise ValueError(f"dask: {address!r} is the address of a {kind.lower()}, not of a scheduler")


async def _kind_of_server(address: str) -> str:
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
        return (await asyncio.wait_for(server.identity(), _ANSWER_WITHIN))["type"]


def _attempt_there(reference: str, text: str, key: str) -> Attempt:
    """Perform a run on a worker, if it has the same code and data as the runner."""
    tasks, configuration = table_at(reference), Configuration.from_json(text)
    if tasks.identify(configuration).key != key:
        raise RuntimeError("this worker has another version of drkm, or other data, than the runner")
    from drkm.machine.threads import one_thread_everywhere

    with one_thread_everywhere():
        return attempt(tasks, configuration)
