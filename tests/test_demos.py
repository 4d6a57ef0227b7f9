"""The demos on few images: what they print and write."""

import re
import sys

import pytest

from drkm.demos import digits, sprites


def test_the_demo_prints_scores_beside_chance_and_draws(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sprites, "N_EVALUATION", 200)
    # DCI grows trees for every class of every factor, which takes most of the time.
    monkeypatch.setattr(sprites, "COLUMNS", {"IRS": "irs", "MIG": "mig", "SAP": "sap"})
    paths = sprites.run(tmp_path, n=60)
    assert all(path.stat().st_size > 0 for path in paths)
    printed, shown = capsys.readouterr()
    for name in ("ours, layer 1", "kernel PCA", "random codes", "chance"):
        assert name in printed
    # The progress bar is for terminals.
    assert shown == ""


def test_the_demo_of_digits_denoises_saves_and_draws(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    # As make demo calls it, where nobody has put it on the search path.
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [".venv/bin/drkm", "demo", "digits"])
    digits.run(tmp_path, n=60)
    assert all((tmp_path / f"digits.{kind}").stat().st_size > 0 for kind in ("safetensors", "png", "html"))
    printed, shown = capsys.readouterr()
    assert "the loaded model gives the same codes" in printed
    assert f"or run .venv/bin/drkm explore {tmp_path / 'digits.safetensors'} --live --open" in printed
    before, after = map(float, re.search(r"error (\S+) before, (\S+) after", printed).groups())
    assert after < before
    assert shown == ""
