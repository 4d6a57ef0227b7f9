"""A damaged store is detected; a store of an earlier format can be read, and is upgraded."""

import json
import sqlite3
from contextlib import closing

import pytest

from command_line import drkm
from drkm.runs._rows import SEAL, checksum
from drkm.runs._sqlite import FORMAT
from drkm.runs.attempt import Attempt, as_json
from drkm.runs.configuration import Configuration, Fields
from drkm.runs.merging import merge
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from runs.probes import TASKS

RUNS = [Configuration("probe", {"rounds": 1}, seed) for seed in range(4)]


@pytest.fixture
def path(tmp_path):
    """A store with three results and a failure."""
    path = tmp_path / "runs.sqlite"
    with Store(path, TASKS) as store:
        for seed, configuration in enumerate(RUNS):
            run, result = TASKS.identify(configuration), as_json({"value": seed + 0.25, "parts": [{"irs": 1}]})
            assert store.claim(run, "me")
            failed = Attempt("failed", traceback="Traceback\nValueError: why\n", seconds=0.5)
            assert store.finish(run.key, "me", Attempt("done", result, seconds=0.5) if seed < 3 else failed)
    return path


def execute(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("checksum", -1, checksum)
        for statement in statements:
            connection.execute(statement)


def first_format(path):
    """Convert the file to the format without checksums."""
    execute(path, "ALTER TABLE runs DROP COLUMN checksum", "PRAGMA user_version = 1")


def read_all(path):
    with Store(path, TASKS, readonly=True) as store:
        results = store.results(RUNS)
        return (
            {run.seed: (results[run], results.seconds(run)) for run in RUNS if run in results},
            [failure.reason for failure in store.failures()],
            [(counts.done, counts.failed) for counts in store.counts()],
            store.environments(),
        )


CHANGES = {
    "another number in a result": "UPDATE runs SET result = replace(result, '1.25', '1.75')",
    "a result that is no JSON": "UPDATE runs SET result = 'x' || result WHERE status = 'done'",
    "another traceback": "UPDATE runs SET traceback = replace(traceback, 'why', 'who')",
    "other seconds": "UPDATE runs SET seconds = seconds + 1",
    "no checksum": "UPDATE runs SET checksum = NULL",
    "another key": "UPDATE runs SET key = replace(key, 'a', 'b')",
    "another configuration": "UPDATE runs SET configuration = replace(configuration, ':1', ':2')",
    "a result that is leased": "UPDATE runs SET status = 'leased', owner = 'me', expires = 0",
    "a lease of something finished": "UPDATE runs SET owner = 'me', expires = 9e99",
    "a failure that is done": "UPDATE runs SET status = 'done' WHERE status = 'failed'",
    "bytes for text": "UPDATE runs SET result = x'80'",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
def test_a_changed_row_is_refused_and_named_whatever_is_asked(path, statement):
    execute(path, statement)
    with Store(path, TASKS, readonly=True) as store:
        questions = [store.counts, store.failures, store.environments, lambda: store.results(RUNS)]
        for question in [*questions, lambda: store.unfinished(RUNS)]:
            with pytest.raises(
                ValueError, match=r"store: .*runs\.sqlite is damaged: \d of 4 runs have changed since they were written"
            ):
                question()
    with Store(path, TASKS) as store, pytest.raises(ValueError, match="is damaged"):
        sweep(RUNS, store)


def test_the_runs_that_are_whole_can_be_copied_out_of_a_damaged_store(path, tmp_path):
    execute(path, CHANGES["another number in a result"])
    with Store(tmp_path / "new.sqlite", TASKS) as store:
        merged = merge(store, path)
        assert (merged.added, merged.damaged) == (3, 1)
        assert store.unfinished(RUNS) == [RUNS[1]]
        with pytest.raises(ValueError, match="is damaged"), Store(path, TASKS) as damaged:
            merge(damaged, store.path)


@pytest.fixture
def torn(tmp_path):
    """A store of 200 runs whose table has one page of zeros."""
    path = tmp_path / "torn.sqlite"
    with Store(path, TASKS) as store:
        for seed in range(200):
            run = TASKS.identify(Configuration("probe", {"rounds": 1}, seed))
            assert store.claim(run, "me")
            assert store.finish(run.key, "me", Attempt("done", as_json({"value": seed}), seconds=0.5))
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
    data = bytearray(path.read_bytes())
    # The second child of the table's root, by the first two entries of its page (SQLite's file format, section 1.6).
    pages = [int.from_bytes(data[size * (root - 1) + at :][:2], "big") for at in (12, 14)]
    child = int.from_bytes(data[size * (root - 1) + pages[1] :][:4], "big")
    data[size * (child - 1) : size * child] = bytes(size)
    path.write_bytes(data)
    return path


def test_runs_before_and_after_an_unreadable_page_can_be_copied_out(torn, tmp_path):
    with pytest.raises(ValueError, match="is damaged"), Store(torn, TASKS, readonly=True) as store:
        store.counts()
    with Store(tmp_path / "new.sqlite", TASKS) as store:
        merged = merge(store, torn)
        assert not merged.whole
        assert 150 < merged.added < 200
        assert [(counts.done, counts.failed) for counts in store.counts()] == [(merged.added, 0)]


def test_the_command_that_a_damaged_store_advises_says_what_is_missing(torn, tmp_path):
    assert "; 'drkm merge NEW " in drkm("status", "--store", torn).err
    done = drkm("merge", tmp_path / "new.sqlite", torn)
    left_out = "a part cannot be read, its runs are left out: the next sweep computes them"
    assert (done.code, done.err) == (0, f"drkm: warning: {torn}: {left_out}\n")
    assert drkm("status", "--store", tmp_path / "new.sqlite").code == 0


def test_a_store_without_checksums_is_read_as_it_is_and_upgraded_by_the_next_writer(path):
    before = read_all(path)
    first_format(path)
    assert read_all(path) == before
    Store(path, TASKS).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert connection.execute("SELECT count(*) FROM runs WHERE checksum IS NULL").fetchone() == (0,)
    assert read_all(path) == before
    execute(path, CHANGES["another number in a result"])
    with pytest.raises(ValueError, match="is damaged"):
        read_all(path)


def test_runs_of_a_store_without_checksums_can_be_merged(path, tmp_path):
    first_format(path)
    with Store(tmp_path / "new.sqlite", TASKS) as store:
        assert merge(store, path).added == 4
    assert read_all(tmp_path / "new.sqlite") == read_all(path)


@pytest.mark.parametrize("version", [0, 1])
def test_a_store_cannot_pass_for_one_without_checksums(path, version):
    execute(path, f"PRAGMA user_version = {version}")
    for readonly in (True, False):
        with pytest.raises(ValueError, match=r"runs\.sqlite is damaged"):
            Store(path, TASKS, readonly=readonly)


def injected(path, column, value, condition="status = 'done'"):
    """Change a column and recompute its checksum, as an attacker would."""
    text = json.dumps(value) if not isinstance(value, str) else value
    execute(path, f"UPDATE runs SET {column} = '{text}' WHERE {condition}", SEAL)


@pytest.mark.parametrize(
    "value", [[1], 3, None, "[[[" * 2000, "not JSON"], ids=["list", "number", "null", "deep", "no"]
)
@pytest.mark.parametrize("column", ["result", "environment"])
def test_what_is_no_object_is_one_sentence_that_names_the_store(path, column, value):
    injected(path, column, value)
    with pytest.raises(ValueError, match=r"^store: .*runs\.sqlite: .*: expected a JSON object, got"):
        read_all(path)


def test_a_missing_field_of_a_result_is_one_sentence_that_names_the_run(path):
    with Store(path, TASKS) as store:
        results = store.results(RUNS)
    (row,) = results.rows(RUNS[:1])
    with pytest.raises(ValueError, match=r"^store: .*the result of .*\"seed\":0.* has no field 'mig'$"):
        results[RUNS[0]]["mig"]
    with pytest.raises(ValueError, match="has no field 'mig'"):
        results[RUNS[0]]["parts"][0]["mig"]
    with pytest.raises(ValueError, match=r"the result of .* has no field 'mig'"):
        row["mig"]
    assert results[RUNS[0]] == {"value": 0.25, "parts": [{"irs": 1}]}
    assert isinstance(row, Fields)


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "[]", "{", ""),
        '{"task":"probe","parameters":[],"seed":0}',
        '{"task":"probe","parameters":{},"seed":"0"}',
        '{"task":"probe","parameters":{},"seed":0,"more":1}',
    ],
)
def test_a_configuration_that_is_none_is_one_sentence(text):
    with pytest.raises(ValueError, match=r"^configuration: expected a "):
        Configuration.from_json(text)


def test_a_lease_is_sealed_whenever_it_changes(path):
    more = TASKS.identify(Configuration("probe", {}, 9))
    with Store(path, TASKS) as store:
        assert store.claim(more, "another-machine 1 abc", 60)
        store.renew("another-machine 1 abc", 90)
        assert store.counts()[0].running == 1
    execute(path, "UPDATE runs SET expires = 9e99 WHERE status = 'leased'")
    with Store(path, TASKS) as store, pytest.raises(ValueError, match="1 of 5 runs"):
        store.counts()
