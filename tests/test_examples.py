from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
by_name = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


@pytest.mark.slow
@by_name
def test_an_example_runs_and_prints_something_without_a_warning(path, tmp_path):
    # Where there is a display, Agg warns that it cannot show a figure on it.
    quiet = {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "ignore:FigureCanvasAgg is non-interactive:UserWarning"}
    environment = {**os.environ, **quiet, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
    assert "Warning" not in ran.stderr
    assert not list(tmp_path.iterdir())


@by_name
def test_an_example_is_a_page_of_the_gallery(path):
    text = path.read_text(encoding="utf-8")
    head = re.match(r'"""\n(?P<title>.+)\n(?P<line>=+)\n\n(?P<about>.+?)"""\n', text, re.DOTALL)
    assert head is not None
    assert len(head["title"]) == len(head["line"])
    # Two or three sentences, then cells of code, each after a sentence of its own, and a figure for the thumbnail.
    assert len(head["about"]) < 420
    cells = text.split("\n# %%\n")[1:]
    assert len(cells) >= 2
    assert all(cell.startswith("# ") for cell in cells)
    assert "figure" in text
    assert text.endswith("\nplt.show()\n")


def test_there_are_examples():
    assert len(EXAMPLES) >= 12
