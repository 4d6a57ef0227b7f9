"""The budget of `Tiled(memory=…)` against the peak of a process that does the work, for every option."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.memory import ALLOWED, CASES, CLEAR

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not CLEAR.exists(), reason="the peak of a process can be cleared on Linux alone")
QUICK = ("too small a budget", *(name for name in CASES if name.startswith("small:")))


def measured(name):
    command = [sys.executable, "-m", "benchmarks.memory", "--case", name]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=True).stdout
    return json.loads(said.splitlines()[-1])


def check(name):
    cell = measured(name)
    assert cell["ended"].startswith("refused: ") == CASES[name].refused, cell["ended"]
    assert cell["peak"] <= ALLOWED * cell["budget"], cell


@pytest.mark.parametrize("name", QUICK)
def test_a_budget_holds(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_a_budget_holds_for_every_option(name):
    check(name)


def test_what_is_refused_takes_next_to_nothing_before():
    assert measured("too small a budget")["peak"] <= 5e6 + 8 * 6000 * 64
