import json
import sqlite3
import subprocess
import sys

import pytest

from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from runs.probes import TASKS


def drkm(*words, cwd=None):
    return subprocess.run([sys.executable, "-m", "drkm", *map(str, words)], capture_output=True, text=True, cwd=cwd)


def make(path, runs):
    with Store(path, TASKS) as store:
        sweep(runs, store, progress=False)
    return path


@pytest.fixture
def store(tmp_path):
    return make(tmp_path / "runs.sqlite", [Configuration("probe", {"fail": seed == 2}, seed) for seed in range(4)])


def test_status_counts_the_runs_and_says_why_some_failed(store):
    done = drkm("status", "--store", store)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:5] == ["probe", "3", "1", "0", "0"]
    assert "failed: probe fail=True seed=2\n  ValueError: fail: the run was asked to fail\n" in done.stdout


def test_status_writes_json_for_scripts(store):
    found = json.loads(drkm("status", "--store", store, "--json").stdout)
    assert found["tasks"][0]["done"] == 3
    assert found["failures"][0]["seed"] == 2
    assert "Traceback" in found["failures"][0]["traceback"]


def test_merge_copies_runs_and_names_those_with_another_result(store, tmp_path):
    runs = [Configuration("probe", {"fail": False}, seed) for seed in (0, 9)]
    other = make(tmp_path / "other.sqlite", runs)
    connection = sqlite3.connect(other)
    connection.execute('UPDATE runs SET result = \'{"digest": "another"}\' WHERE configuration LIKE \'%"seed":0%\'')
    connection.commit()
    connection.close()
    done = drkm("merge", store, other, "--json")
    assert done.returncode == 0, done.stderr
    (merged,) = json.loads(done.stdout)["merged"]
    assert (merged["added"], merged["shared"], len(merged["different"])) == (1, 1, 1)
    assert "differs in digest" in done.stderr
    assert json.loads(drkm("status", "--store", store, "--json").stdout)["tasks"][0]["done"] == 4


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
def test_what_a_user_can_mend_is_one_sentence_and_exit_code_2(words, sentence, tmp_path):
    (tmp_path / "text.sqlite").write_text("no database" * 1000)
    done = drkm(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["text.sqlite"]
