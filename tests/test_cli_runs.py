import json
import sqlite3
from contextlib import closing

import pytest

from command_line import drkm, refused
from drkm.runs._rows import SEAL, checksum
from drkm.runs.configuration import Configuration
from drkm.runs.packing import pack
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from runs.probes import TASKS


def make(path, runs):
    with Store(path, TASKS) as store:
        sweep(runs, store, progress=False)
    return path


def change(path, statement):
    """Change the runs of a store, and update their checksums."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("checksum", -1, checksum)
        connection.execute(statement)
        connection.execute(SEAL)


@pytest.fixture
def store(tmp_path):
    return make(tmp_path / "runs.sqlite", [Configuration("probe", {"fail": seed == 2}, seed) for seed in range(4)])


def test_status_counts_the_runs_and_says_why_some_failed(store):
    done = drkm("status", "--store", store)
    assert done.code == 0, done.err
    assert done.out.splitlines()[1].split()[:5] == ["probe", "3", "1", "0", "0"]
    assert "failed: probe fail=True seed=2\n  ValueError: fail: the run was asked to fail\n" in done.out


def test_status_writes_json_for_scripts(store):
    found = json.loads(drkm("status", "--store", store, "--json").out)
    assert found["tasks"][0]["done"] == 3
    assert found["failures"][0]["seed"] == 2
    assert "Traceback" in found["failures"][0]["traceback"]


def test_status_sums_over_tasks():
    from drkm.cli.runs import _task_rows
    from drkm.runs.store import Counts

    rows = _task_rows([Counts("a", 3, 1, 2, 0, 3, 30.0), Counts("b", 4, 0, 0, 1, 0, 60.0)])
    assert rows[-1] == ("all", "7", "1", "2", "1", "3", "1 min 30 s")
    assert len(_task_rows([Counts("a", 3, 1, 2, 0, 3, 30.0)])) == 2


def test_status_of_experiments_says_what_is_missing_and_how_long_it_may_take(tmp_path, monkeypatch):
    from drkm.experiments import registry
    from report.test_report import small_study

    runs = [Configuration("probe", {"fail": seed == 2}, seed) for seed in range(6)]
    monkeypatch.setattr(registry, "TASKS", TASKS)
    monkeypatch.setattr(
        registry, "EXPERIMENTS", {"one": small_study(runs[:4], name="one"), "two": small_study(runs, name="two")}
    )
    store = make(tmp_path / "runs.sqlite", runs[:3])
    change(store, "UPDATE runs SET seconds = 30 WHERE status = 'done'")
    done = drkm("status", "all", "--store", store)
    assert done.code == 0, done
    lines = [line.split() for line in done.out.splitlines()]
    assert ["one", "2", "of", "4", "1", "1"] in lines
    assert ["two", "2", "of", "6", "1", "3"] in lines
    assert ["all", "2", "of", "6", "1", "3"] in lines
    assert "time left: about 1 min 30 s (one run at a time, none is running)" in done.out
    found = json.loads(drkm("status", "one", "--store", store, "--json").out)
    assert found["experiments"][0]["seconds_left"] == 30
    make(store, runs)
    assert "no run is missing" in drkm("status", "two", "--store", store).out


def test_status_without_a_run_like_the_missing_ones_does_not_guess(tmp_path, monkeypatch):
    from drkm.experiments import registry
    from report.test_report import small_study

    monkeypatch.setattr(registry, "TASKS", TASKS)
    runs = [Configuration("probe", {}, 7)]
    monkeypatch.setattr(registry, "EXPERIMENTS", {"one": small_study(runs, name="one")})
    store = make(tmp_path / "runs.sqlite", [])
    assert "time left: not known" in drkm("status", "one", "--store", store).out


def test_status_shows_what_a_terminal_would_obey_and_does_not_send_it(store):
    change(store, "UPDATE runs SET traceback = 'why' || char(27) || '[2J' || char(155) || char(8238) || char(10)")
    done = drkm("status", "--store", store)
    assert "  why\\u001b[2J\\u009b\\u202e\n" in done.out
    assert not set(done.out) & {"\x1b", "\x9b", "\u202e"}
    found = drkm("status", "--store", store, "--json").out
    assert not set(found) & {"\x1b", "\x9b", "\u202e"}
    assert json.loads(found)["failures"][0]["traceback"] == "why\x1b[2J\x9b\u202e\n"


def test_errors_and_their_tracebacks_send_a_terminal_nothing_to_obey():
    for words in (("status", "--store", "\x1b[2J\x9b"), ("--debug", "status", "--store", "\x1b[2J\x9b")):
        done = drkm(*words)
        assert "there is no file \\u001b[2J\\u009b" in done.err
        assert not set(done.err) & {"\x1b", "\x9b"}


def test_damaged_runs_are_named_and_left_out_of_a_merge(store, tmp_path):
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE runs SET result = result || ' ' WHERE configuration LIKE '%\"seed\":0%'")
    done = drkm("status", "--store", store)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"drkm: store: {store} is damaged: 1 of 4 runs have changed since they were written")
    done = drkm("merge", tmp_path / "new.sqlite", store)
    assert done.out.endswith("runs.sqlite: 3 runs added, 0 were there, 0 of them with another result\n")
    assert "runs.sqlite: 1 run damaged and left out" in done.err


def test_a_merge_reads_its_sources_before_it_makes_a_store(store, tmp_path):
    with closing(sqlite3.connect(store)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(store.read_bytes())
    data[size * (root - 1) : size * root] = bytes(size)
    store.write_bytes(data)
    sentence = f"store: {store} is damaged, and none of its runs can be read"
    assert sentence in refused("merge", tmp_path / "new.sqlite", store)
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize("field", ["seeds", "scale"])
def test_a_packed_file_with_another_kind_of_description_is_refused(field, tmp_path):
    pack([], tmp_path / "runs.xz", {field: 5})
    sentence = f"runs.xz is damaged (its {field} should be text, got 5)"
    assert sentence in refused("report", "--store", tmp_path / "runs.xz", "-o", tmp_path / "page.html")


def test_merge_copies_runs_and_names_those_with_another_result(store, tmp_path):
    runs = [Configuration("probe", {"fail": False}, seed) for seed in (0, 9)]
    other = make(tmp_path / "other.sqlite", runs)
    change(other, 'UPDATE runs SET result = \'{"digest": "another"}\' WHERE configuration LIKE \'%"seed":0%\'')
    done = drkm("merge", store, other, "--json")
    assert done.code == 0, done.err
    (merged,) = json.loads(done.out)["merged"]
    assert (merged["added"], merged["shared"], len(merged["different"])) == (1, 1, 1)
    assert "differs in digest" in done.err
    assert json.loads(drkm("status", "--store", store, "--json").out)["tasks"][0]["done"] == 4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("status", "--store", "nowhere.sqlite"), "store: there is no file nowhere.sqlite"),
        (("status", "--store", "text.sqlite"), "store: text.sqlite is not a drkm store"),
        (("merge", "new.sqlite", "text.sqlite"), "store: text.sqlite is not a drkm store"),
        (("reproduce", "table9"), "experiment: unknown name 'table9', allowed are table1"),
        (("reproduce", "table1", "--jobs", "0"), "jobs: expected a number of processes, or -1"),
        (("reproduce", "table1", "--scale", "tiny"), "scale: unknown name 'tiny', allowed are quick, medium, paper"),
        (("reproduce", "table1", "--store", "text.sqlite"), "store: text.sqlite is not a drkm store"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence_and_exit_code_2(words, sentence, tmp_path, monkeypatch):
    (tmp_path / "text.sqlite").write_text("no database" * 1000)
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(*words)
    assert [file.name for file in tmp_path.iterdir()] == ["text.sqlite"]
