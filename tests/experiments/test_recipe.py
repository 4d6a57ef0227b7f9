"""The recipe of CONTRIBUTING.md for a new experiment: one file in a copy of the package, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import drkm
from drkm.experiments.registry import EXPERIMENTS, TASKS

EXPERIMENT = '''
"""Coins: how often heads come up."""

import random

from drkm.experiments.experiment import SimpleExperiment
from drkm.experiments.section import Claim, ResultTable, Verdict
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import Task


def toss(parameters, seed):
    coin = random.Random(seed)
    return {"heads": sum(coin.random() < 0.5 for _ in range(parameters["tosses"]))}


def claims(rows, tosses):
    fair = all(abs(row["heads"] / tosses - 0.5) < 0.1 for row in rows)
    verdict = (Verdict.HELD if fair else Verdict.FAILED) if rows else Verdict.UNDECIDED
    return [Claim("Coins are fair.", "", f"{len(rows)} coins", verdict, "Within 0.1 of a half.")]


EXPERIMENT = SimpleExperiment(
    name="coins",
    title="Coins that are tossed",
    tasks={"toss": Task(f"{__name__}:toss")},
    text=lambda tosses: "Three coins.",
    scales={"quick": 1000, "medium": 10_000, "paper": 100_000},
    runs=lambda tosses: [Configuration("toss", {"tosses": tosses}, seed) for seed in range(3)],
    tables=lambda rows, tosses: [
        ResultTable("heads", "Heads", [{"coin": row["seed"], "heads": row["heads"]} for row in rows])
    ],
    claims=claims,
)
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A function that runs the command of a copy of the package with one more file."""
    folder = tmp_path_factory.mktemp("copy")
    package = Path(drkm.__file__).parent
    shutil.copytree(package, folder / "drkm", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "drkm" / "experiments" / "denoising" / "coins.py").write_text(EXPERIMENT.lstrip(), "utf-8")

    def command(*words: object) -> str:
        environment = {**os.environ, "PYTHONPATH": str(folder), "MPLBACKEND": "Agg"}
        words = (sys.executable, "-m", "drkm", *map(str, words))
        done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=folder, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return command


def test_an_experiment_is_one_file_from_the_help_to_the_report(copy, tmp_path):
    assert "coins" not in EXPERIMENTS
    listed = copy("reproduce", "--help")
    assert listed.index("Stability of components") < listed.index("Coins that are tossed")
    # Two processes, because the workers must find the task too.
    written = copy("reproduce", "coins", "--jobs", 2, "--out", tmp_path).splitlines()
    assert str(tmp_path / "quick" / "coins" / "heads.csv") in written
    heads = (tmp_path / "quick" / "coins" / "heads.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in heads] == ["coin", "0", "1", "2"]
    (task,) = json.loads(copy("status", "--store", tmp_path / "runs.sqlite", "--json"))["tasks"]
    assert (task["task"], task["done"], task["failed"]) == ("toss", 3, 0)
    page = (tmp_path / "quick" / "report.html").read_text("utf-8")
    assert '<h2 id="coins-title">Coins that are tossed</h2>' in page
    assert "Coins are fair." in page


def test_every_experiment_says_its_own_name_and_computes_with_its_own_tasks():
    assert len({found.place for found in EXPERIMENTS.values()}) == len(EXPERIMENTS)
    for name, found in EXPERIMENTS.items():
        assert found.name == name
        runs = found.configurations("quick")
        assert {run.task for run in runs} <= set(found.tasks) <= set(TASKS.tasks)
        assert {run.parameters["family"] for run in runs if "family" in run.parameters} <= found.families


def test_listing_the_experiments_imports_neither_torch_nor_scipy():
    code = (
        "import sys, drkm.experiments.registry; print({'torch', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
