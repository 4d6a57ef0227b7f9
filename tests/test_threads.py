"""Thread counts are the caller's: what a fit sets for itself no other thread sees, and nothing of it stays."""

import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController

from drkm import ConstrDRKM, KernelPCA
from drkm.machine import elementwise, threads
from drkm.machine.threads import one_thread, one_thread_everywhere, one_thread_of_blas

X = np.random.RandomState(0).randn(80, 3)
BLAS = ThreadpoolController().select(user_api="blas").lib_controllers


def blas():
    return [library.get_num_threads() for library in BLAS]


def counts():
    """What the calling thread sees: of torch, its MKL, and the BLAS of numpy and scipy."""
    # Asked first: torch gives a new thread its counts when it is asked.
    torchs, library = torch.get_num_threads(), threads._torch_library(torch.__file__)
    mkl = [library.MKL_Get_Max_Threads()] if hasattr(library, "MKL_Get_Max_Threads") else []
    return [torchs, *mkl, *blas()]


def in_new_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(timeout=60)


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads(), blas()
    torch.set_num_threads(2)
    for library in BLAS:
        library.set_num_threads(2)
    seen = counts()
    yield
    assert counts() == seen
    assert in_new_thread(counts) == seen
    torch.set_num_threads(before[0])
    for library, count in zip(BLAS, before[1], strict=True):
        library.set_num_threads(count)


@contextmanager
def held_elsewhere(limit):
    """Another thread inside `limit`."""
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with limit():
            entered.set()
            assert leave.wait(60)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert entered.wait(60)
        try:
            yield
        finally:
            leave.set()
            held.result()


def test_one_thread_is_that_of_the_calling_thread_alone():
    before = counts()
    with one_thread():
        assert torch.get_num_threads() == 1
        assert in_new_thread(counts) == before
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    with one_thread(when=False):
        assert counts() == before


def test_torch_computes_in_one_thread():
    # Threads are made when they are first needed, so that a process of its own can count them.
    words = (
        "import os, torch; from drkm.machine.threads import one_thread; torch.set_num_threads(3)\n"
        "def made():\n"
        "    before = len(os.listdir('/proc/self/task'))\n"
        "    A = torch.ones(600, 600, dtype=torch.float64); (A @ A).exp().sum(); torch.linalg.eigh(A)\n"
        "    return len(os.listdir('/proc/self/task')) - before\n"
        "with one_thread(): print(made())\n"
        "print(made())"
    )
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("counts threads as Linux shows them")
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "2"]


@pytest.mark.parametrize("limit", [one_thread, one_thread_everywhere])
def test_overlapping_limits_are_restored_whoever_leaves_first(limit):
    before = counts()
    first, second = limit(), limit()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        for pool, step in ((one, first.__enter__), (two, second.__enter__)):
            pool.submit(step).result()
        assert one.submit(torch.get_num_threads).result() == two.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 2
        for pool, leaves in ((one, first), (two, second)):
            pool.submit(leaves.__exit__, None, None, None).result()
        assert one.submit(counts).result() == two.submit(counts).result() == counts() == before


def test_blas_stays_at_one_thread_until_the_last_leaves():
    with one_thread_everywhere():
        with held_elsewhere(one_thread_everywhere):
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    assert set(blas()) == {2}


@pytest.mark.parametrize("limit", [one_thread_of_blas, one_thread_everywhere])
def test_blas_is_limited_and_restored_by_whichever_thread_it_is(limit):
    with held_elsewhere(limit):
        assert set(blas()) == {1}
    assert set(blas()) == {2}
    first, second = limit(), limit()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        for pool, step in ((one, first.__enter__), (two, second.__enter__)):
            pool.submit(step).result()
        assert set(blas()) == {1}
        for pool, leaves in ((one, first), (two, second)):
            pool.submit(leaves.__exit__, None, None, None).result()
        assert set(blas()) == {2}


def test_small_fits_of_kernel_pca_in_threads_lose_no_count_and_have_the_same_bits():
    before, samples = counts(), np.random.RandomState(0).randn(300, 40)

    def work(_):
        return KernelPCA(3, kernel="rbf", random_state=0).fit(samples).eigenvectors_.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(40))) == {work(None)}
    assert in_new_thread(counts) == counts() == before


def test_overlapping_fits_in_threads_lose_no_count():
    before = counts()

    def work(seed):
        model = ConstrDRKM((3, 2), tol=1e-2, random_state=seed).fit(X)
        model.transform(X[:5])
        model.sample(2)
        return counts()

    with ThreadPoolExecutor(8) as pool:
        own = [pool.submit(work, seed) for seed in range(16)]
        mine = [work(seed) for seed in range(3)]
        [each.result() for each in own]
    # BLAS may have been held by another fit at that moment.
    assert {tuple(seen[: len(before) - len(BLAS)]) for seen in mine} == {tuple(before[: len(before) - len(BLAS)])}
    assert in_new_thread(counts) == counts() == before


@pytest.mark.parametrize("limit", [one_thread, one_thread_everywhere, one_thread_of_blas])
def test_an_error_restores_the_counts(limit):
    before = counts()
    with pytest.raises(ZeroDivisionError), limit():
        1 / 0  # noqa: B018
    assert counts() == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers of POSIX")
# Files that threadpoolctl was reading are closed by the collector then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("limit", "longest"), [(one_thread, 1e-4), (one_thread_everywhere, 4e-3), (one_thread_of_blas, 1e-4)]
)
def test_ctrl_c_at_any_moment_restores_the_counts(limit, longest):
    before, source, hits = counts(), random.Random(0), 0

    def interrupt(number, frame):
        raise KeyboardInterrupt

    kept = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, source.uniform(1e-6, longest))
                with limit():
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                hits += 1
            assert counts() == before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, kept)
    assert hits > 20


def forked(function):
    """Return whether a function is true in a forked process."""
    child = os.fork()
    if child == 0:
        os._exit(0 if function() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork of POSIX")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("limit", [one_thread, one_thread_everywhere, one_thread_of_blas])
def test_a_forked_process_has_the_counts_that_its_own_thread_leaves(limit):
    before = counts()
    with held_elsewhere(limit):
        assert forked(lambda: counts() == before)
    own = limit()
    with own:
        assert forked(lambda: own.__exit__(None, None, None) is not True and counts() == before)


@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.T, lambda x: x[:, 1:-1]], ids=["rows", "columns", "part"])
def test_exponentials_have_the_same_bits_with_any_number_of_threads(monkeypatch, layout):
    monkeypatch.setattr(elementwise, "_FEW", 100)
    draws = torch.from_numpy(-np.random.RandomState(0).rand(37, 53) * 20)
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda count=count: count)
        found.append(elementwise.exp_(layout(draws.clone())))
    torch.testing.assert_close(found[0], layout(draws).exp(), rtol=1e-15, atol=0)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
