import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drkm.runs import store as store_module
from drkm.runs._rows import SEAL
from drkm.runs._sqlite import APPLICATION, FORMAT
from drkm.runs.attempt import Attempt, as_json, attempt
from drkm.runs.configuration import Configuration
from drkm.runs.lease import is_dead, new_owner
from drkm.runs.merging import merge
from drkm.runs.store import Store
from runs.probes import PROBE, TASKS


def probe(seed=0, **parameters):
    return Configuration("probe", parameters, seed)


def done(**result):
    return Attempt("done", result=as_json(result), seconds=0.5, environment='{"device":"cpu"}')


def failed(reason):
    return Attempt("failed", traceback=f"Traceback\nValueError: {reason}\n", seconds=0.5)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite", TASKS) as opened:
        yield opened


def record(store, configuration, attempt):
    run = TASKS.identify(configuration)
    assert store.claim(run, "me")
    assert store.finish(run.key, "me", attempt)


def test_a_result_outlives_the_store_that_recorded_it(tmp_path):
    with Store(tmp_path / "runs.sqlite", TASKS) as first:
        record(first, probe(3, rounds=1), done(score=0.25, name="µ"))
    with Store(tmp_path / "runs.sqlite", TASKS, readonly=True) as second:
        results = second.results([probe(3, rounds=1), probe(4, rounds=1)])
    assert len(results) == 1
    assert results[probe(3, rounds=1)] == {"score": 0.25, "name": "µ"}
    assert results.seconds(probe(3, rounds=1)) == 0.5


def test_numpy_values_become_json_and_what_is_not_finite_null():
    text = as_json({"a": np.float64("nan"), "b": np.arange(2), "c": (1, np.inf), "d": {"e": np.int32(3)}, "f": True})
    assert json.loads(text) == {"a": None, "b": [0, 1], "c": [1, None], "d": {"e": 3}, "f": True}


def test_a_result_that_is_no_json_is_a_failure_with_a_traceback(monkeypatch):
    monkeypatch.setattr("runs.probes.probe", lambda parameters, seed: {"model": object()})
    assert attempt(TASKS, probe()).status == "failed"
    assert "not JSON serializable" in attempt(TASKS, probe()).traceback


def test_a_run_is_leased_to_one_of_all_who_ask(tmp_path):
    run = TASKS.identify(probe())
    with Store(tmp_path / "runs.sqlite", TASKS) as one, Store(tmp_path / "runs.sqlite", TASKS) as two:
        assert one.claim(run, "one")
        assert not two.claim(run, "two")
        assert not one.claim(run, "one")


def test_a_lease_that_is_not_renewed_runs_out(store):
    run = TASKS.identify(probe())
    assert store.claim(run, "one", 0.05)
    assert store.states([run.key]) == {run.key: "leased"}
    time.sleep(0.06)
    assert store.states([run.key]) == {run.key: "expired"}
    assert store.claim(run, "two", 60)
    store.renew("one", 60)
    assert not store.claim(run, "one")


def test_a_renewed_lease_holds(store):
    run = TASKS.identify(probe())
    assert store.claim(run, "one", 0.05)
    store.renew("one", 60)
    time.sleep(0.06)
    assert not store.claim(run, "two")


def test_a_result_is_taken_after_the_lease_ran_out_and_a_failure_is_not(store):
    run = TASKS.identify(probe())
    assert store.claim(run, "one", -1)
    assert store.claim(run, "two")
    assert not store.finish(run.key, "one", failed("late"))
    assert store.finish(run.key, "one", done(value=1))
    assert not store.finish(run.key, "two", done(value=2))
    assert store.results([probe()])[probe()] == {"value": 1}


def test_released_runs_are_free_again(store):
    run = TASKS.identify(probe())
    assert store.claim(run, "one")
    store.release("one")
    assert store.states([run.key]) == {}
    assert store.claim(run, "two")


def test_leases_of_a_dead_process_end_and_those_of_a_living_one_stay(store):
    words = "from drkm.runs.lease import new_owner; print(new_owner())"
    dead = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout.strip()
    assert is_dead(dead)
    assert not is_dead(new_owner())
    assert not is_dead("another-machine 1 abc")
    machine = dead.partition(" ")[0]
    assert not any(is_dead(f"{machine} {number} abc") for number in ("9" * 20, "²"))
    for seed, owner in enumerate((dead, new_owner(), "another-machine 1 abc")):
        assert store.claim(TASKS.identify(probe(seed)), owner)
    counts = store.counts()[0]
    assert (counts.running, counts.interrupted) == (2, 1)
    store.release_dead()
    states = store.states(TASKS.identify(probe(seed)).key for seed in range(3))
    assert sorted(states.values()) == ["expired", "leased", "leased"]


def test_failed_runs_are_given_out_again_once_for_each_request_to_retry(store):
    run = TASKS.identify(probe())
    record(store, probe(), failed("why"))
    assert not store.claim(run, "two")
    asked = time.time()
    assert store.claim(run, "two", retry_before=asked)
    store.finish(run.key, "two", failed("why still"))
    assert not store.claim(run, "three", retry_before=asked)
    assert [failure.reason for failure in store.failures()] == ["ValueError: why still"]
    assert store.failures()[0].attempts == 2


def test_counts_and_failures_are_those_of_the_runs(store):
    record(store, probe(0), done(value=1))
    record(store, probe(1), failed("one"))
    record(store, probe(2), failed("two"))
    assert store.claim(TASKS.identify(probe(3)), "gone", -1)
    counts = store.counts()[0]
    assert (counts.task, counts.done, counts.failed, counts.running, counts.interrupted) == ("probe", 1, 2, 0, 1)
    assert counts.seconds == 0.5
    assert counts.recent == 1
    assert [failure.configuration for failure in store.failures([probe(1), probe(0)])] == [probe(1)]
    assert store.unfinished(map(probe, range(5))) == [probe(3), probe(4)]
    assert store.environments() == [{"device": "cpu", "runs": 1}]


def test_a_merge_takes_results_over_failures_and_reports_other_results(tmp_path):
    with Store(tmp_path / "here.sqlite", TASKS) as here, Store(tmp_path / "there.sqlite", TASKS) as there:
        record(here, probe(0), failed("here"))
        record(here, probe(1), done(value=1, train_s=3.0))
        record(here, probe(2), done(value=2))
        record(there, probe(0), done(value=0))
        record(there, probe(1), done(value=1, train_s=4.0))
        record(there, probe(2), done(value=-2))
        record(there, probe(3), done(value=3))
        record(there, probe(4), failed("there"))
        assert there.claim(TASKS.identify(probe(5)), "running")
        assert here.claim(TASKS.identify(probe(4)), "me")
        merged = merge(here, tmp_path / "there.sqlite")
        assert (merged.added, merged.shared) == (2, 3)
        assert [(each.configuration, each.fields) for each in merged.differences] == [(probe(2), ("value",))]
        results = here.results(map(probe, range(6)))
        assert {seed: results[probe(seed)]["value"] for seed in range(4)} == {0: 0, 1: 1, 2: 2, 3: 3}
        assert here.unfinished(map(probe, range(6))) == [probe(4), probe(5)]
        assert merge(here, tmp_path / "there.sqlite").added == 0


def test_merging_is_the_same_in_either_order_where_results_agree(tmp_path):
    for name, seeds in (("a", (0, 1)), ("b", (1, 2))):
        with Store(tmp_path / f"{name}.sqlite", TASKS) as one:
            for seed in seeds:
                record(one, probe(seed), done(value=seed))
    found = []
    for first, second in (("a", "b"), ("b", "a")):
        with Store(tmp_path / f"{first}{second}.sqlite", TASKS) as both:
            merge(both, tmp_path / f"{first}.sqlite")
            merge(both, tmp_path / f"{second}.sqlite")
            results = both.results(map(probe, range(4)))
            found.append({seed: results[probe(seed)] for seed in range(3)})
    assert found[0] == found[1] == {seed: {"value": seed} for seed in range(3)}


def test_results_are_found_where_the_data_are_not(store, monkeypatch, tmp_path):
    file = tmp_path / "cars"
    configuration = probe(file=str(file))
    file.write_bytes(b"cars")
    record(store, configuration, done(value=7))
    file.unlink()
    assert store.results([configuration])[configuration] == {"value": 7}
    monkeypatch.setitem(TASKS.tasks, "probe", replace(PROBE, revision=2))
    assert len(store.results([configuration])) == 0


def _newer(path):
    Store(path, TASKS).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()


def _foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (key TEXT)")
    connection.commit()
    connection.close()


def _foreign_and_newer(path):
    _foreign(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _damaged(path):
    with Store(path, TASKS) as opened:
        for seed in range(300):
            record(opened, probe(seed), done(value=seed))
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (_newer, ValueError, f"written by a newer drkm .format {FORMAT + 1}, this one reads up to {FORMAT}"),
        (_foreign, ValueError, "is not a drkm store"),
        (_foreign_and_newer, ValueError, "is not a drkm store"),
        (lambda path: path.write_bytes(b"no database" * 1000), ValueError, "is not a drkm store"),
        (lambda path: path.mkdir(), OSError, "is a folder"),
        (lambda path: path.write_bytes(b"S"), ValueError, "is not a drkm store"),
    ],
)
@pytest.mark.parametrize("readonly", [True, False])
def test_a_file_that_is_not_ours_is_one_sentence_and_stays_as_it_was(make, error, sentence, readonly, tmp_path):
    path = tmp_path / "runs.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error, match=sentence):
        Store(path, TASKS, readonly=readonly)
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]
    assert before is None or path.read_bytes() == before


def test_a_damaged_store_is_one_sentence(tmp_path):
    _damaged(tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match="is damaged"), Store(tmp_path / "runs.sqlite", TASKS, readonly=True) as store:
        store.counts()


def test_only_looking_makes_no_file(tmp_path):
    with pytest.raises(OSError, match="there is no file"):
        Store(tmp_path / "runs.sqlite", TASKS, readonly=True)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="is not a drkm store"):
        Store(tmp_path / "empty", TASKS, readonly=True)
    assert [file.name for file in tmp_path.iterdir()] == ["empty"]


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "runs.sqlite").touch()
    Store(tmp_path / "runs.sqlite", TASKS).close()
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()


@contextmanager
def readonly_folder():
    """A folder that nobody may write to, not even root."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        with Store(folder / "runs.sqlite", TASKS) as store:
            record(store, probe(), done(value=1))
        (folder / "runs.sqlite").chmod(0o444)
        folder.chmod(0o555)
        if root:
            os.seteuid(65534)
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_store_in_a_read_only_folder_can_be_read_and_refuses_to_be_written():
    with readonly_folder() as folder:
        with Store(folder / "runs.sqlite", TASKS, readonly=True) as store:
            assert store.results([probe()])[probe()] == {"value": 1}
        with pytest.raises(OSError, match=r"store: .*runs.sqlite cannot be"):
            Store(folder / "runs.sqlite", TASKS)
        with pytest.raises(OSError, match=r"store: .*new.sqlite cannot be"):
            Store(folder / "new.sqlite", TASKS)
        with pytest.raises(OSError, match=r"store: .*new.sqlite cannot be"):
            Store(folder / "deeper" / "new.sqlite")
        assert [file.name for file in folder.iterdir()] == ["runs.sqlite"]


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(store):
    record(store, probe(0), done(value=0))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="no room left"):
        record(store, probe(1), done(value="x" * 100_000))
    assert store.results([probe(0)])[probe(0)] == {"value": 0}
    store._connection.execute("PRAGMA max_page_count = 100000")
    assert store._connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert len(store.results([probe(1)])) == 0


def test_a_store_of_ten_thousand_runs_opens_in_less_than_a_second(tmp_path):
    path = tmp_path / "runs.sqlite"
    configurations = [probe(seed, rounds=1) for seed in range(10_000)]
    with Store(path, TASKS) as store, store.writing() as connection:
        for configuration in configurations:
            run = TASKS.identify(configuration)
            connection.execute(
                "INSERT INTO runs (key, task, configuration, data, revision, version, status, attempts, started,"
                " finished, seconds, result, environment) VALUES (?, 'probe', ?, '', 1, ?, 'done', 1, 0, 0, 0,"
                " '{\"value\": 1}', '{}')",
                (run.key, configuration.canonical(), run.version),
            )
        connection.execute(SEAL)
    clock = time.process_time()
    with Store(path, TASKS) as store:
        assert store.counts()[0].done == 10_000
        opened = time.process_time() - clock
        assert len(store.results(configurations)) == 10_000
    assert opened < 1.0


def test_many_keys_are_asked_for_in_parts(store, monkeypatch):
    monkeypatch.setattr(store_module, "_CHUNK", 2)
    for seed in range(5):
        record(store, probe(seed), done(value=seed))
    assert len(store.results(map(probe, range(9)))) == 5


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_second_look_at_a_store_leaves_the_locks_of_the_first(tmp_path):
    # Closing any handle of the file would release all locks of this process on it.
    path = tmp_path / "runs.sqlite"
    program = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    connection.execute('PRAGMA locking_mode = EXCLUSIVE'); connection.execute('BEGIN EXCLUSIVE')\n"
        "except sqlite3.OperationalError as error:\n    print(error)\n"
    )
    with Store(path, TASKS) as first:
        first._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        first._connection.execute("PRAGMA journal_mode = DELETE")
        first._connection.execute("BEGIN IMMEDIATE")
        with contextlib.suppress(OSError, ValueError):
            Store(path, TASKS, readonly=True).close()
        other = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
        first._connection.execute("ROLLBACK")
    assert other.stdout.strip() == "database is locked"
