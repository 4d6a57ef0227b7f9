"""kill -9 at any time: of a runner with all its processes, of the runner alone, of one of its workers."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from drkm.runs.store import Store
from runs.probes import TASKS, ends, probes
from runs.probes import __file__ as PROBES

psutil = pytest.importorskip("psutil")

RUNS, KILLS, SLEEP = 1000, 100, 0.05


def start(path, runs):
    words = [sys.executable, PROBES, path, "--runs", runs, "--sleep", SLEEP]
    with open(path.with_suffix(".log"), "a") as log:
        return subprocess.Popen(list(map(str, words)), start_new_session=True, stderr=log)


def finished(path):
    """Return which runs are done, and when they ended."""
    if not path.is_file():
        return {}
    with Store(path) as store:
        return dict(store._all("SELECT key, finished FROM runs WHERE status = 'done'"))


def kill(process, how):
    """Kill, and return whether there was a process to kill."""
    if how == "worker":
        children = psutil.Process(process.pid).children()
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        if workers:
            random.choice(workers).kill()
        return bool(workers)
    if how == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    return True


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_hundred_kills_lose_no_finished_run_and_change_no_result(tmp_path):
    path, rng = tmp_path / "runs.sqlite", random.Random(0)
    kept, process, groups, hits = {}, None, [], dict.fromkeys(("group", "runner", "worker"), 0)
    runs = RUNS
    while sum(hits.values()) < KILLS:
        if process is None or process.poll() is not None:
            process = start(path, runs)
            groups.append(process.pid)
        # Most kills come while runs end, the others while processes start.
        before, deadline = len(finished(path)), time.monotonic() + (20 if rng.random() < 0.7 else 0)
        while time.monotonic() < deadline and process.poll() is None and len(finished(path)) == before:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.4))
        if process.poll() is not None:
            # On a busy machine a sweep can end before it is killed: add more runs.
            assert process.returncode == 0, path.with_suffix(".log").read_text()
            runs += RUNS
            continue
        how = rng.choice(list(hits))
        hits[how] += kill(process, how)
        now = finished(path)
        assert kept.items() <= now.items()
        kept = now
    assert len(kept) < runs
    last = process if process.poll() is None else start(path, runs)
    assert last.wait(timeout=600) == 0
    # A run whose process was killed twice in one sweep counts as failed there, and the next sweep computes it.
    assert start(path, runs).wait(timeout=600) == 0
    assert kept.items() <= finished(path).items()

    with Store(path, TASKS) as store:
        assert store._all("SELECT count(*) FROM runs") == [(runs,)]
        (counts,) = store.counts()
        assert (counts.done, counts.failed, counts.running, counts.interrupted) == (runs, 0, 0, 0)
        results = store.results(probes(runs, SLEEP))
        assert store._all("PRAGMA integrity_check") == [("ok",)]
    # A digest depends on the seed alone: without the wait, this process computes what an uninterrupted sweep would.
    wanted = [TASKS.perform(run) for run in probes(runs, 0.0)]
    assert [results[run] for run in probes(runs, SLEEP)] == wanted
    assert len({result["digest"] for result in wanted}) == runs
    assert all(map(ends, groups))
