"""Damaged stores: refused with one sentence that names the file, or read as they were written."""

import random
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from drkm.runs.attempt import Attempt, as_json
from drkm.runs.configuration import Configuration
from drkm.runs.merging import merge
from drkm.runs.store import Store
from fuzz.mutations import COPIES_IN_PART, PARTS, damaged_copies
from runs.probes import TASKS

resource = pytest.importorskip("resource")
MEMORY_IN_USE = Path("/proc/self/statm")
pytestmark = pytest.mark.skipif(not MEMORY_IN_USE.exists(), reason="limits memory by what Linux says is in use")

RUNS = [Configuration("probe", {"name": "µ" * (seed % 3), "rounds": seed}, seed) for seed in range(24)]
MORE = TASKS.identify(Configuration("probe", {"rounds": 7}, 99))
#: processor seconds, wall-clock seconds and bytes that one store may take; other work only increases the second
LONGEST, LONGEST_WAIT, MEMORY = 5.0, 60.0, 256 << 20
#: the log of SQLite, and the index of the log
BESIDE = ("-wal", "-shm")


def write(path, runs):
    """Record runs: every sixth fails, every eighth is leased by another runner."""
    with Store(path, TASKS) as store:
        for configuration in runs:
            run, seed = TASKS.identify(configuration), configuration.seed
            assert store.claim(run, "another-machine 1 abc", 1e6)
            text = as_json({"value": seed / 7, "rows": [{"irs": seed, "name": "ä"}] * (seed % 5)})
            done = Attempt("done", text, seconds=seed / 3, environment='{"device":"cpu"}')
            failed = Attempt("failed", traceback=f"Traceback\nValueError: {seed}\n", seconds=0.5)
            if seed % 8:
                assert store.finish(run.key, "another-machine 1 abc", done if seed % 6 else failed)
        yield store


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Files of two stores by suffix: one that was closed, and one whose last runs are in the log."""
    folder = tmp_path_factory.mktemp("stores")
    for _ in write(folder / "a.sqlite", RUNS):
        pass
    for _ in write(folder / "b.sqlite", RUNS[:12]):
        pass
    for _ in write(folder / "b.sqlite", RUNS[12:]):
        logged = {end: (folder / f"b.sqlite{end}").read_bytes() for end in ("", *BESIDE)}
    assert len(logged["-wal"]) > 20_000
    return [{"": (folder / "a.sqlite").read_bytes()}, logged]


def put(files, path):
    for end in ("", *BESIDE):
        path.with_name(path.name + end).unlink(missing_ok=True)
    for end, content in files.items():
        path.with_name(path.name + end).write_bytes(content)


def contents(store):
    """Return everything that a store can report, as sets that contain those of an earlier state."""
    results = store.results(RUNS)
    rows, damaged, whole = store.finished()
    assert whole
    assert not damaged
    return {
        *((run.canonical(), repr(results[run]), results.seconds(run)) for run in RUNS if run in results),
        *((each.configuration.canonical(), each.traceback, each.finished) for each in store.failures()),
        *(tuple(row.values()) for row in rows),
    }, [(each.task, each.done, each.failed, each.running, each.seconds) for each in store.counts()]


def outcome(path, action):
    """Return what an action returns, or the one sentence that refuses the store."""
    clock, computing = time.perf_counter(), time.process_time()
    try:
        found = action()
    except (ValueError, OSError) as error:
        said = str(error)
        assert said.startswith("store: "), said
        assert path.name in said, said
        assert "\n" not in said, said
        found = None
    assert time.process_time() - computing < LONGEST
    assert time.perf_counter() - clock < LONGEST_WAIT
    return found


def read(path):
    with Store(path, TASKS, readonly=True) as store:
        return contents(store)


def write_more(path):
    with Store(path, TASKS) as store:
        # As a sweep does, because a damaged store must not be written to.
        store.check()
        store.release_dead()
        assert store.claim(MORE, "me")
        assert store.finish(MORE.key, "me", Attempt("done", '{"value":1}', seconds=1.0))
        return {entry for entry in contents(store)[0] if MORE.key not in entry}


def copied(path, target):
    put({}, target)
    with Store(target, TASKS) as store:
        merge(store, path)
        return contents(store)[0]


def check(path, target, written, *, log_only):
    """Read, copy and write a store; a damaged log may only lose the last runs."""
    # An empty file counts as a new store when it is opened for writing.
    whole, counts = written if path.stat().st_size else (set(), [])
    found = outcome(path, lambda: read(path))
    if found is not None:
        assert found[0] <= whole
        assert log_only or found == (whole, counts)
    # A merge may leave out runs, and reports that.
    assert (outcome(path, lambda: copied(path, target)) or set()) <= whole
    more = outcome(path, lambda: write_more(path))
    assert more is None or (more <= whole and (log_only or more == whole))
    return found is not None


@contextmanager
def limited_memory():
    """Limit the additional memory of this process."""
    taken = int(MEMORY_IN_USE.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def fuzz(stores, folder, count, seed):
    """Damage one file of a store at a time; return how many of the stores were read."""
    path, target, source = folder / "runs.sqlite", folder / "copy.sqlite", random.Random(seed)
    written = []
    for files in stores:
        put(files, path)
        written.append(read(path))
    kinds = [(files, known, end) for files, known in zip(stores, written, strict=True) for end in files]
    shares = [count // len(kinds) + (place < count % len(kinds)) for place in range(len(kinds))]
    readable = 0
    with limited_memory():
        for (files, known, end), share in zip(kinds, shares, strict=True):
            for copy in damaged_copies(files[end], share, source.randrange(1 << 30)):
                put({**files, end: copy}, path)
                readable += check(path, target, known, log_only=end != "")
    return readable


def test_damaged_stores_are_refused_or_read_as_they_were_written(stores, tmp_path):
    assert 0 < fuzz(stores, tmp_path, 200, seed=0) < 200


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", PARTS)
def test_ten_thousand_damaged_stores_are_refused_or_read_as_they_were_written(stores, tmp_path, part):
    assert 0 < fuzz(stores, tmp_path, COPIES_IN_PART, seed=part) < COPIES_IN_PART
