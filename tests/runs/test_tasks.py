import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drkm.runs.configuration import Configuration
from drkm.runs.store import Store
from drkm.runs.tasks import Task, TaskTable, table_at
from runs import probes
from runs.probes import PROBE, TASKS


def key(run: Configuration) -> str:
    return TASKS.identify(run).key


def test_the_key_depends_on_task_parameters_seed_and_revision_and_on_nothing_else(monkeypatch):
    one = Configuration("probe", {"rounds": 1, "name": "a"}, 0)
    assert key(one) == key(Configuration("probe", {"name": "a", "rounds": 1}, 0))
    assert key(Configuration("probe", {"s": (1, 2)})) == key(Configuration("probe", {"s": [1, 2]}))
    others = [Configuration("probe", {"rounds": 2, "name": "a"}, 0), Configuration("probe", {"rounds": 1}, 0)]
    others.append(Configuration("probe", {"rounds": 1, "name": "a"}, 1))
    before = key(one)
    monkeypatch.setitem(TASKS.tasks, "probe", replace(PROBE, revision=2))
    assert len({before, key(one), *map(key, others)}) == 5


def test_the_key_depends_on_the_version_of_the_code(monkeypatch):
    before = key(Configuration("probe"))
    monkeypatch.setattr("drkm.runs.configuration.__version__", "99.0")
    assert key(Configuration("probe")) != before


def test_the_key_depends_on_the_checksum_of_the_data_and_not_on_the_table(tmp_path):
    run = Configuration("probe", {"file": str(tmp_path / "data")})
    (tmp_path / "data").write_bytes(b"one")
    first = key(run)
    assert TaskTable("elsewhere:TABLE", {"probe": PROBE, "other": PROBE}).identify(run).key == first
    (tmp_path / "data").write_bytes(b"two")
    assert key(run) != first


def test_the_key_of_a_run_is_what_it_always_was(monkeypatch):
    monkeypatch.setattr("drkm.runs.configuration.__version__", "0.1.0")
    run = Configuration("probe", {"rounds": 1}, 3)
    assert key(run) == "3af8f8e3a43ca71fc48ddb5fe64e4804245a01a7f8d396ac35dd3e11bfb8c19b"


def test_unknown_tasks_are_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="task: unknown name 'cats', allowed are probe"):
        TASKS.perform(Configuration("cats"))
    with Store(tmp_path / "runs.sqlite") as store, pytest.raises(ValueError, match="no table of tasks was given"):
        store.results([Configuration("probe")])


def test_a_task_sees_lists_and_never_tuples(monkeypatch):
    monkeypatch.setattr(probes, "probe", lambda parameters, seed: {"kind": str(type(parameters["s"]))})
    assert TASKS.perform(Configuration("probe", {"s": (1, 2)})) == {"kind": "<class 'list'>"}


def test_a_table_is_found_again_by_its_reference():
    assert table_at(TASKS.reference) is TASKS
    with pytest.raises(TypeError, match=r"reference: expected 'module:name' of a TaskTable, got 'runs.probes:PROBE'"):
        table_at("runs.probes:PROBE")


def test_a_task_without_data_of_its_own_has_no_checksum():
    assert TaskTable("", {"plain": Task("json:loads")}).identify(Configuration("plain")).data == ""


def test_runs_name_no_experiment_and_no_dataset():
    folder = Path(sys.modules["drkm.runs"].__file__).parent
    named = re.compile("drkm.(experiments|datasets)|DatasetError|denois|disentangle")
    assert not [file.name for file in folder.glob("*.py") if named.search(file.read_text("utf-8"))]
    code = "import sys, drkm.runs.runner; print([m for m in sys.modules if m.startswith(('drkm.exp', 'drkm.data'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
