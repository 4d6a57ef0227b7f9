"""Runs on a Dask cluster. Results come back to the runner, which records them: workers need not see the store."""

from __future__ import annotations

import queue
import time
from typing import Any

from drkm.experiments._pools import Ended
from drkm.experiments.attempt import Attempt, attempt, one_thread
from drkm.experiments.configuration import Configuration
from drkm.experiments.tasks import Run, identify

#: seconds in which a scheduler has to answer, and then a worker
_ANSWER_WITHIN = 4.0
#: runs handed out for each thread of the cluster: the second waits at the worker, so that the thread never does
_AHEAD = 2
#: seconds after which the size of the cluster is asked for again
_SIZE_EVERY = 5.0


class DaskPool:
    """An existing cluster, or one of processes on this machine.

    Parameters
    ----------
    address : str
        Of a scheduler, such as "tcp://10.0.0.1:8786", or "local".
    jobs : int
        Processes of a local cluster.
    """

    def __init__(self, address: str, jobs: int) -> None:
        try:
            import distributed
        except ModuleNotFoundError as error:
            raise ValueError("dask: needs the extra 'dask': pip install 'drkm[dask]'") from error
        self._address = address
        self._cluster: Any = None
        self._futures: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._size, self._asked = 0, -_SIZE_EVERY
        if address == "local":
            self._cluster = distributed.LocalCluster(
                n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None
            )
        try:
            self._client = distributed.Client(self._cluster or address, timeout=_ANSWER_WITHIN, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"dask: no scheduler answers at {address!r}; takes 'local' or 'tcp://host:port'"
            ) from error
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        """See that there is a worker, and that it has drkm."""
        from distributed import TimeoutError as Late

        try:
            self._client.submit(identify, Configuration("probe"), pure=False).result(timeout=_ANSWER_WITHIN)
        except (Late, TimeoutError) as error:
            raise ValueError(f"dask: no worker of {self._address!r} answers within {_ANSWER_WITHIN:.0f} s") from error
        except ModuleNotFoundError as error:
            raise ValueError(f"dask: the workers of {self._address!r} need drkm installed ({error})") from error

    def free(self) -> int:
        """Return how many more runs the cluster can hold, as large as it is now."""
        if time.monotonic() - self._asked > _SIZE_EVERY:
            self._size, self._asked = sum(self._client.nthreads().values()), time.monotonic()
        return _AHEAD * self._size - len(self._futures)

    def submit(self, run: Run) -> None:
        """Send a run to the cluster."""
        future = self._client.submit(
            _attempt_there, run.configuration.canonical(), run.key, key=f"drkm-{run.key}-{time.time_ns()}", pure=False
        )
        self._futures[run.key] = future
        future.add_done_callback(lambda _, key=run.key: self._ended.put(key))

    def collect(self, timeout: float | None) -> list[Ended]:
        """Wait for a run to come back."""
        try:
            keys = [self._ended.get(timeout=timeout)]
        except queue.Empty:
            return []
        while not self._ended.empty():
            keys.append(self._ended.get())
        return [(key, self._outcome(self._futures.pop(key))) for key in keys]

    def _outcome(self, future: Any) -> Attempt:
        from distributed import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                return Attempt("lost", traceback="the Dask worker was killed")
            return Attempt("failed", traceback=f"{type(error).__name__}: {error}\n")
        raise OSError(f"dask: the scheduler at {self._address!r} is gone; what is finished is in the store")

    def close(self) -> None:
        """Take back what the cluster has not begun, and leave it; end it if it is our own."""
        self._client.cancel(list(self._futures.values()), force=True)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _attempt_there(text: str, key: str) -> Attempt:
    """Perform a run on a worker, if the worker has the same code and data as the runner."""
    configuration = Configuration.from_json(text)
    if identify(configuration).key != key:
        raise RuntimeError("this worker has another version of drkm, or other data, than the runner")
    with one_thread():
        return attempt(configuration)
