"""Damaged and forged models and checkpoints: refused with one sentence that names the file, or read as if whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.mutations import COPIES_IN_PART, PARTS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory and alarms")


def run(kind: str, count: int, timeout: float, seed: int = 0) -> dict[str, int]:
    """Return how often each outcome occurred for `count` damaged and `count` forged files, in a process with limits."""
    script = Path(__file__).with_name("model_files.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), kind, str(count), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("kind", ["model", "checkpoint"])
def test_no_damaged_file_gives_another_result_or_a_raw_error(kind):
    outcomes = run(kind, 150, 280)
    assert outcomes["damaged, refused"] > 140
    assert outcomes["forged, refused"] > 75


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["model", "checkpoint"])
def test_ten_thousand_damaged_and_forged_files(kind, part):
    assert sum(run(kind, COPIES_IN_PART, 1700, seed=part).values()) == 2 * COPIES_IN_PART
