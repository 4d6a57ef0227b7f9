"""Temporary limits on the number of threads of numerical libraries.

`torch.set_num_threads` changes more than the calling thread's count: it also sets the count of threads that start
later, so that overlapping fits lose it. OpenMP and MKL have a count per thread, which is set here. The BLAS of numpy
and scipy has one count for the whole process: the first user sets it, and the last one restores it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

Part = TypeVar("Part")
#: applies a function to each of some parts
ShareOut = Callable[[Callable[[Any], object], Sequence[Any]], None]

#: entries of a small matrix, with which a second thread gains little
SMALL = 1 << 21
#: multiply-adds that one thread finishes before a second one wakes up
FEW_PRODUCTS = 1 << 27
#: libraries of torch that lead to its own OpenMP, on Linux, macOS and Windows
_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib", "libiomp5md.dll")


def count() -> int:
    """Return how many threads the calling thread may use: those of torch or, where it is not imported, of the BLAS."""
    torch = _imported_torch()
    if torch is not None:
        return torch.get_num_threads()
    return max((count for _, count in _BLAS.counts(_blas_libraries())), default=1)


@contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """Limit torch to one thread in the calling thread inside the block, if `when` is true and torch is imported.

    Other threads are not affected, nor is a process that another thread forks meanwhile. If torch was built without
    OpenMP there is no count to set.
    """
    torch = _imported_torch() if when else None
    library = None if torch is None else _torch_library(torch.__file__)
    if torch is None or library is None:
        yield
        return
    # torch initialises the counts of a thread on first use, which must not happen later.
    before, set_count = torch.get_num_threads(), library.omp_set_num_threads
    with _for_a_while(partial(set_count, 1), partial(set_count, before)), _one_of_mkl(library):
        yield


@contextmanager
def one_thread_everywhere() -> Iterator[None]:
    """Limit numpy, scipy and scikit-learn to one thread too; BLAS is limited in all threads of the process."""
    from threadpoolctl import ThreadpoolController

    loaded = ThreadpoolController()
    openmp, blas = (loaded.select(user_api=kind).lib_controllers for kind in ("openmp", "blas"))
    before = _counts(openmp)
    with one_thread(), _for_a_while(partial(_set_one, before), partial(_restore, before)), _BLAS.held(blas):
        yield


@contextmanager
def one_thread_of_blas(when: bool = True) -> Iterator[None]:
    """Keep the BLAS of numpy and that of scipy to one thread in the whole process for a while, or leave them alone.

    Of two libraries, each with threads that wait for work, one is in the way of the other where products are small.
    """
    # Also where another thread holds it already: that one may leave before.
    with _BLAS.held(_blas_libraries()) if when else nullcontext():
        yield


@contextmanager
def workers(like: Any, when: bool = True, *, several: bool = True) -> Iterator[ShareOut]:
    """Yield a function that applies work on an array or tensor `like` this to each of some parts, in `count` threads.

    Without `several` it is one. Inside the block torch and the BLAS of numpy have one thread each. The workers
    synchronise once, when all parts are done, whereas the threads of single operations synchronise after each of them,
    and on a busy machine every synchronisation waits for the slowest. If `when` is false, parts are done one after the
    other and the BLAS keeps its threads. A GPU needs no threads.
    """
    if getattr(like, "is_cuda", False):
        yield one_after_the_other
        return
    most = count() if when and several else 1
    with one_thread(), one_thread_of_blas(when), ThreadPoolExecutor(most) if most > 1 else nullcontext() as pool:
        yield one_after_the_other if pool is None else partial(_in_pool, pool)


def one_after_the_other(work: Callable[[Part], object], parts: Sequence[Part]) -> None:
    """Apply work to each of some parts in this thread."""
    for part in parts:
        work(part)


def _in_pool(pool: Executor, work: Callable[[Part], object], parts: Sequence[Part]) -> None:
    def alone(part: Part) -> None:
        with one_thread():
            work(part)

    if len(parts) == 1:
        work(parts[0])
        return
    for done in [pool.submit(alone, part) for part in parts]:
        done.result()


def _imported_torch() -> Any:
    """Return torch if the process has imported it, which takes longer than many a fit, else None."""
    torch = sys.modules.get("torch")
    # Not while another thread imports it.
    return torch if hasattr(torch, "get_num_threads") else None


@cache
def _torch_library(file: str) -> ctypes.CDLL | None:
    folder = Path(file).parent / "lib"
    for name in _LIBRARIES:
        if (folder / name).is_file():
            library = ctypes.CDLL(str(folder / name))
            # Look the name up in the library's own dependencies: other copies of OpenMP may be loaded.
            return library if hasattr(library, "omp_set_num_threads") else None
    return None


@cache
def _blas_libraries() -> list[Any]:
    """Return the BLAS of numpy and that of scipy; none in a process that has numpy alone, where nothing limits it."""
    try:
        import scipy.linalg.blas  # noqa: F401 - before a look at what is loaded
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return []
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def _for_a_while(change: Callable[[], None], restore: Callable[[], None]) -> Iterator[None]:
    """Change something and restore it, even if Ctrl-C comes during either."""
    try:
        change()
        yield
    finally:
        try:
            restore()
        except KeyboardInterrupt:
            restore()
            raise


@contextmanager
def _one_of_mkl(library: ctypes.CDLL) -> Iterator[None]:
    if not hasattr(library, "MKL_Set_Num_Threads_Local"):
        yield
        return
    before = library.MKL_Get_Max_Threads()
    try:
        # The returned value is 0 if the thread has no count of its own, which must be restored as such.
        before = library.MKL_Set_Num_Threads_Local(1)
        yield
    finally:
        library.MKL_Set_Num_Threads_Local(before)


#: a library as threadpoolctl controls it, and its count
_Counts = list[tuple[Any, int]]


def _counts(libraries: Sequence[Any]) -> _Counts:
    return [(library, library.get_num_threads()) for library in libraries]


def _set_one(counts: _Counts) -> None:
    for library, _ in counts:
        _set_count(library, 1)


def _restore(counts: _Counts) -> None:
    for library, count in counts:
        _set_count(library, count)


def _set_count(library: Any, count: int) -> None:
    """Set the count of a library in whichever thread this is.

    From version 3.8 on threadpoolctl silently ignores all threads but the first that set the count of OpenBLAS. A limit
    in another thread would have no effect, and one that is left last in another thread would never be restored.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


class _SharedCount:
    """Limits libraries with one count per process to one thread while anyone holds the limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: the holders, with their threads
        self._holders: dict[object, int] = {}
        self._before: _Counts = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._keep_own_thread)

    @contextmanager
    def held(self, libraries: Sequence[Any]) -> Iterator[None]:
        """Hold the count at one thread."""
        holder = object()
        with _for_a_while(partial(self._add, holder, libraries), partial(self._remove, holder)):
            yield

    def counts(self, libraries: Sequence[Any]) -> _Counts:
        """Return the counts that the calling thread would have if others held no limit."""
        with self._lock:
            is_of_others = self._holders and threading.get_ident() not in self._holders.values()
            return self._before if is_of_others else _counts(libraries)

    def _add(self, holder: object, libraries: Sequence[Any]) -> None:
        with self._lock:
            if not self._holders:
                self._before = _counts(libraries)
            self._holders[holder] = threading.get_ident()
            _set_one(self._before)

    def _remove(self, holder: object | None) -> None:
        with self._lock:
            self._holders.pop(holder, None)
            if not self._holders:
                _restore(self._before)
                self._before = []

    def _keep_own_thread(self) -> None:
        """In a forked process, forget holders in threads that do not exist there, and a lock that one may have held."""
        own = threading.get_ident()
        self._lock = threading.Lock()
        self._holders = {holder: thread for holder, thread in self._holders.items() if thread == own}
        # Also if another thread was about to hold it.
        self._remove(None)


_BLAS = _SharedCount()
