import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from drkm.runs import _pools, runner
from drkm.runs.attempt import Attempt, _environment
from drkm.runs.configuration import Configuration
from drkm.runs.runner import Swept, sweep
from drkm.runs.store import Store
from runs import probes
from runs.probes import TASKS, ends
from runs.probes import __file__ as PROBES


def probe(seed=0, **parameters):
    return Configuration("probe", parameters, seed)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def performed(monkeypatch):
    """The seeds of the runs that this process computes, in order."""
    seeds = []
    original = probes.probe

    def watched(parameters, seed):
        seeds.append(seed)
        return original(parameters, seed)

    monkeypatch.setattr(probes, "probe", watched)
    return seeds


def test_a_sweep_computes_each_run_once_and_a_second_one_nothing(path, performed):
    runs = [probe(seed) for seed in (3, 1, 2, 1)]
    with Store(path, TASKS) as store:
        assert sweep(runs, store) == Swept(asked=3, computed=3, failed=0)
        assert performed == [3, 1, 2]
        assert sweep([*runs, probe(4)], store) == Swept(asked=4, computed=1, failed=0)
        assert performed == [3, 1, 2, 4]
        results = store.results(runs)
    assert all(results[run] == TASKS.perform(run) for run in runs)


def test_nothing_to_do_starts_nothing(path, monkeypatch):
    monkeypatch.setattr(runner, "ProcessPool", None)
    with Store(path, TASKS) as store:
        assert sweep([], store, jobs=2) == Swept(0, 0, 0)


def test_a_failing_run_is_recorded_with_its_traceback_and_stops_nothing(path, performed):
    runs = [probe(0), probe(1, fail=True), probe(2)]
    with Store(path, TASKS) as store:
        assert sweep(runs, store) == Swept(asked=3, computed=2, failed=1)
        (failure,) = store.failures()
        assert failure.configuration == probe(1, fail=True)
        assert failure.reason == "ValueError: fail: the run was asked to fail"
        assert "Traceback (most recent call last)" in failure.traceback
        assert "probes.py" in failure.traceback
        assert sweep(runs, store) == Swept(asked=3, computed=0, failed=0)
        assert performed == [0, 1, 2]


def test_failed_runs_are_computed_again_when_asked(path, performed, monkeypatch):
    monkeypatch.setattr(probes, "probe", lambda parameters, seed: 1 / seed)
    with Store(path, TASKS) as store:
        assert sweep([probe(0)], store).failed == 1
        assert sweep([probe(0)], store, retry_failed=True).failed == 1
        monkeypatch.setattr(probes, "probe", lambda parameters, seed: {"value": 1})
        assert sweep([probe(0)], store, retry_failed=True) == Swept(asked=1, computed=1, failed=0)
        assert store.failures() == []


def test_processes_give_the_results_of_this_process_with_one_thread_each(path):
    runs = [probe(seed, rounds=2) for seed in range(12)]
    with Store(path, TASKS) as store:
        assert sweep(runs, store, jobs=2) == Swept(asked=12, computed=12, failed=0)
        results = store.results(runs)
        assert all(results[run] == TASKS.perform(run) for run in runs)
        assert {place["threads"] for place in store.environments()} == {1}


def test_a_run_that_kills_its_process_twice_has_failed_and_the_others_are_done(path):
    runs = [probe(0), probe(1, die=True), probe(2), probe(3)]
    with Store(path, TASKS) as store:
        assert sweep(runs, store, jobs=2) == Swept(asked=4, computed=3, failed=1)
        assert "killed by SIGKILL" in store.failures()[0].reason
        assert len(store.results(runs)) == 3


def test_a_run_whose_process_is_killed_from_outside_is_computed_again(path):
    pool = _pools.ProcessPool(TASKS, 1)
    try:
        run = TASKS.identify(probe(0, sleep=0.3))
        pool.submit(run)
        while not pool._workers[0].ready:
            assert pool.collect(5) == []
        os.kill(pool._workers[0].process.pid, signal.SIGKILL)
        ((key, attempt),) = pool.collect(10)
        assert (key, attempt.status) == (run.key, "lost")
        assert pool.free() == 1
        pool.submit(run)
        while not (ended := pool.collect(10)):
            pass
        assert ended[0][1].status == "done"
    finally:
        pool.close()


def test_workers_that_cannot_start_are_one_sentence(path, monkeypatch):
    monkeypatch.setattr(_pools, "_work", len)
    with Store(path, TASKS) as store:
        with pytest.raises(OSError, match=r"worker processes die as they start .*exit code 1"):
            sweep([probe(0), probe(1)], store, jobs=2)
        assert store.counts() == []


def test_the_environment_of_the_caller_is_left_as_it_was(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with _pools._environment({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(("declared", "threads"), [("2,1", 2), ("4", 4), ("", None), ("many", None)])
def test_the_environment_of_a_run_holds_the_threads_that_openmp_takes(declared, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", declared)
    assert json.loads(_environment.__wrapped__(with_torch=False))["threads"] == threads


def test_a_worker_that_a_signal_without_a_name_killed_is_described():
    assert _pools._cause_of_death(SimpleNamespace(exitcode=-40)) == "the worker process was killed by signal 40"


def test_a_heartbeat_outlives_a_file_that_cannot_be_read_for_a_moment(path, monkeypatch):
    beats, again = [], threading.Event()

    def renew(self, owner, seconds):
        beats.append(owner)
        if len(beats) == 1:
            raise ValueError("store: is damaged")
        again.set()

    monkeypatch.setattr(Store, "renew", renew)
    Store(path, TASKS).close()
    with runner._heartbeat(path, "me", 0.04):
        assert again.wait(10)


def test_two_runners_on_one_store_never_compute_the_same_run(path, performed):
    runs = [probe(seed, sleep=0.002) for seed in range(100)]
    Store(path, TASKS).close()

    def work(found):
        with Store(path, TASKS) as store:
            found.append(sweep(runs, store))

    swept = []
    threads = [threading.Thread(target=work, args=(swept,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(performed) == list(range(100))
    assert sum(each.computed for each in swept) == 100
    assert all(each.computed > 10 for each in swept)


def test_a_runner_waits_for_runs_of_another_and_takes_them_over_when_it_falls_silent(path, performed):
    with Store(path, TASKS) as store:
        assert store.claim(TASKS.identify(probe(0)), "another-machine 1 x", 1.0)
        clock = time.monotonic()
        assert sweep([probe(0), probe(1)], store) == Swept(asked=2, computed=2, failed=0)
        assert time.monotonic() - clock >= 0.9
    assert performed == [1, 0]


def test_a_lease_is_renewed_while_its_run_lasts(path):
    run = probe(0, sleep=0.8)
    with Store(path, TASKS) as store, Store(path, TASKS) as other:
        thread = threading.Thread(target=_sweep_alone, args=(path, run))
        thread.start()
        refused = 0
        while thread.is_alive() and other.states([TASKS.identify(run).key]) != {TASKS.identify(run).key: "done"}:
            refused += other.states([TASKS.identify(run).key]) == {TASKS.identify(run).key: "leased"}
            time.sleep(0.05)
            assert not (refused and other.claim(TASKS.identify(run), "other"))
        thread.join()
        assert refused > 5
        assert len(store.results([run])) == 1


def _sweep_alone(path, run):
    with Store(path, TASKS) as store:
        sweep([run], store, lease_seconds=0.2)


def test_an_interrupt_gives_the_runs_back_and_keeps_what_is_done(path, monkeypatch):
    def interrupted(parameters, seed):
        if seed == 2:
            raise KeyboardInterrupt
        return {"value": seed}

    monkeypatch.setattr(probes, "probe", interrupted)
    with Store(path, TASKS) as store:
        with pytest.raises(KeyboardInterrupt):
            sweep([probe(seed) for seed in range(4)], store)
        (counts,) = store.counts()
        assert (counts.done, counts.running, counts.interrupted) == (2, 0, 0)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_processes_and_leaves_the_store_sound(path):
    words = [sys.executable, PROBES, path, "--runs", "1000", "--sleep", "0.05"]
    process = subprocess.Popen(list(map(str, words)), start_new_session=True, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (path.is_file() and _done(path) > 3):
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in said
    with Store(path, TASKS) as store:
        (counts,) = store.counts()
        assert 3 < counts.done < 1000
        assert (counts.failed, counts.running, counts.interrupted) == (0, 0, 0)
    assert ends(process.pid)


SWEEP_WITH_BARS = """
import sys
from tqdm import tqdm
from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from drkm.runs.tasks import Task, TaskTable

def with_a_bar(parameters, seed):
    with tqdm(disable=True):
        return {}

TASKS = TaskTable(f"{__name__}:TASKS", {"probe": Task(f"{__name__}:with_a_bar")})
if __name__ == "__main__":
    with Store(sys.argv[1], TASKS) as store:
        print(sweep([Configuration("probe", {}, seed) for seed in range(4)], store, jobs=2).computed)
"""


def test_workers_whose_runs_have_progress_bars_leave_nothing_behind_in_the_system(path, tmp_path):
    script = tmp_path / "sweep_with_bars.py"
    script.write_text(SWEEP_WITH_BARS)
    done = subprocess.run([sys.executable, script, path], capture_output=True, text=True, timeout=60)
    # The tracker of multiprocessing would report semaphores that are left over at the end.
    assert (done.stdout, done.stderr) == ("4\n", "")


def _done(path):
    with Store(path, TASKS) as store:
        return sum(counts.done for counts in store.counts())


def test_a_full_disk_ends_a_sweep_with_one_sentence(path, monkeypatch):
    monkeypatch.setattr(probes, "probe", lambda parameters, seed: {"value": "x" * 50_000})
    with Store(path, TASKS) as store:
        store._connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(OSError, match="no room left"):
            sweep([probe(seed) for seed in range(100)], store)
        assert 0 < store.counts()[0].done < 10


def test_a_run_whose_fit_was_interrupted_is_not_recorded(path, monkeypatch):
    def interrupted(parameters, seed):
        # Like a fit, which returns its best point so far.
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return {"digest": "half-finished"}

    with Store(path, TASKS) as store:
        with monkeypatch.context() as patched:
            patched.setattr(probes, "probe", interrupted)
            with pytest.raises(KeyboardInterrupt):
                sweep([probe(0), probe(1)], store)
        assert probe(0) not in store.results([probe(0)])
        assert sweep([probe(0), probe(1)], store).computed == 2


@pytest.mark.parametrize("jobs", [0, -2, 1.5, True, "2"])
def test_jobs_are_checked(jobs, path):
    with Store(path, TASKS) as store, pytest.raises(ValueError, match="jobs: expected a number of processes, or -1"):
        sweep([], store, jobs=jobs)


@pytest.mark.parametrize(("terminal", "progress"), [(True, True), (True, False), (False, True)])
def test_progress_goes_to_a_terminal_alone_and_only_if_asked_for(terminal, progress, path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with Store(path, TASKS) as store:
        sweep([probe(0)], store, progress=progress)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("1/1" in err) == (terminal and progress)
    assert err == "" or terminal


def test_a_lost_run_is_tried_once_more_by_the_same_runner(path):
    class Flaky(_pools.HerePool):
        lost = 0

        def collect(self, timeout):
            ended = super().collect(timeout)
            if Flaky.lost == 0:
                Flaky.lost += 1
                return [(key, Attempt("lost", traceback="gone")) for key, _ in ended]
            return ended

    with Store(path, TASKS) as store:
        pool = Flaky(TASKS)
        try:
            bar = runner.tqdm(disable=True)
            work = runner._Sweep(store, pool, "me", 60, 0.0, bar)
            work.through([TASKS.identify(probe(0))])
        finally:
            pool.close()
        assert (work.computed, work.failed) == (1, 0)
