"""The model of the cost against the peak of a process that does the work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["dense", "tiled", "tiled:keep=0"])
@pytest.mark.parametrize("data", ["structured", "images"])
def test_a_fit_takes_no_more_memory_than_the_model_says(operator, data):
    command = [sys.executable, "-m", "benchmarks.scaling_cell", operator, "2000", "--data", data, "--limit", "20"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=True).stdout
    cell = json.loads(said.splitlines()[-1])
    # The model does not include memory that the allocator frees later.
    assert cell["peak"] - cell["baseline"] <= 1.25 * cell["model_bytes"] + 5e7
