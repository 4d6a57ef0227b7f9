"""Every `drkm` command line of README and docs is run, page by page, in a folder with the files that the page names.

Commands that take long or need a network are run with the substitutions in `small`: experiments have few images of
drawn sprites, Algorithm 1 takes a few steps, the live page ends once it is served, and downloads are read from this
machine. Forms such as `drkm fit DATA -o MODEL` are run with the words of `FILLED` in their places.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from command_line import drkm
from documented import PAGES, commands, parsed

#: replacements of placeholders, in this order
FILLED = {
    "plot MODEL [DATA] -o OUT": "plot MODEL -o figures",
    "[sprites or digits]": "digits",
    " [DATA]": "",
    "quick | medium | paper": "quick",
    "| head": "",
    "fill | mean | median": "mean",
    "COMMAND": "fit",
    "--labels …": "--labels labels.csv",
    "NAME…": "figure2",
    "NAME": "figure2",
    "MODEL": "model.safetensors",
    "DATA": "data.csv",
    "CODES": "codes.csv",
    "FACTORS": "factors.csv",
    "OUT": "out.csv",
    "PAGE": "page.html",
    "NEW": "new.sqlite",
    "DAMAGED": "results/runs.sqlite",
}
#: a command that takes minutes → one that takes seconds
QUICKER = {"demo": "demo --n 60", "reproduce": "reproduce --jobs 1"}
#: commands that are refused, as the page says
REFUSED = {"encode digits.safetensors new.csv -o codes.npy"}
#: commands that still take longer than a second or two
LONG = ("demo", "reproduce", "select", "plot")


def write_csv(path, head, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def patients(count, columns):
    rng = np.random.default_rng(count)
    plain = rng.standard_normal((count, 2)) @ rng.standard_normal((2, columns))
    return np.round(plain + 0.1 * rng.standard_normal((count, columns)), 4)


def write_patients(path, gaps=False):
    rows = [[f"p{number}", *row] for number, row in enumerate(patients(60, 5).tolist())]
    for row in rows[::7] if gaps else ():
        row[2] = ""
    write_csv(path, ["patient", "a", "b", "c", "d", "e"], rows)


def digits(folder):
    images = load_digits().images
    np.save("train.npy", images[:80])
    np.save("new.npy", images[80:140])


def scores(folder):
    rng = np.random.default_rng(0)
    write_csv("codes.csv", "abc", rng.standard_normal((60, 3)).tolist())
    write_csv("factors.csv", "fg", rng.integers(3, size=(60, 2)).tolist())


def of_explore(folder):
    digits(folder)
    wine = load_wine()
    rows = [[*row, wine.target_names[kind]] for row, kind in zip(wine.data.tolist(), wine.target, strict=True)]
    write_csv("wine.csv", [*wine.feature_names, "class"], rows[::3])
    for name in ("digits", "model"):
        assert drkm("fit", "train.npy", "-o", f"{name}.safetensors", "-c", "4,2").code == 0
    words = ("--drop", "class", "--scale", "standard", "-c", "3")
    assert drkm("fit", "wine.csv", "-o", "wine.safetensors", *words).code == 0


def of_forms(folder):
    scores(folder)
    write_csv("data.csv", "abcd", patients(60, 4).tolist())
    write_csv("labels.csv", ["kind"], [[number % 3] for number in range(60)])
    assert drkm("fit", "data.csv", "-o", "model.safetensors", "-c", "2").code == 0


def of_readme(folder):
    digits(folder)
    of_forms(folder)


def with_gaps(folder):
    write_patients(folder / "patients.csv", gaps=True)
    write_patients(folder / "new.csv", gaps=True)


def shipped_runs(folder):
    (folder / "docs").mkdir()
    shutil.copy(Path(__file__).parents[1] / "docs" / "results.xz", folder / "docs")


def tables(*names):
    return lambda folder: [write_patients(folder / name) for name in names]


#: page → function that writes the files that it names, if they are not those of the forms
FILES = {
    "README.md": of_readme,
    "explore.md": of_explore,
    "gaps.md": with_gaps,
    "anomalies.md": tables("table.csv", "new.csv"),
    "denoising.md": tables("noisy.csv"),
    "study.md": shipped_runs,
}


def lines_of(page: Path) -> list[str]:
    """Return the commands of a page with their placeholders filled, without mentions of a command or of its options."""
    found = []
    for line in commands(page, "drkm"):
        for place, word in FILLED.items():
            line = line.replace(place, word)
        try:
            if "--" not in line.split()[0] and "--help" not in line:
                parsed(shlex.split(line))
        except Exception as refused:
            # Only mentions such as `drkm fit` or `drkm encode --anomaly` may lack arguments.
            if not re.search(r"[Mm]issing|requires an argument", str(refused)):
                raise
            continue
        found.append(line)
    return list(dict.fromkeys(found))


#: changes the files of a shell, and has its own test
COMPLETION = "--install-completion"
LINES = {
    page.name: lines
    for page in PAGES
    if page.name != "CHANGELOG.md" and (lines := [line for line in lines_of(page) if line != COMPLETION])
}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Everything that makes long commands short."""
    from drkm.datasets import downloads
    from drkm.estimator import ConstrDRKM
    from drkm.experiments import registry
    from drkm.experiments.denoising import _problems, digits
    from drkm.experiments.study import Study, scales
    from drkm.solvers import Penalty

    curves = {"n_train": 40, "n_validation": 20, "widths": (12.0,), "components": (4, 8), "protocol": (0.5,)}
    curves |= {"rival_points": 40, "rival_widths": (12.0,), "rival_components": (8,)}
    images = {"n_train": 60, "n_validation": 30, "n_test": 20, "widths": (1.0,), "components": (8,), "layers": (8,)}
    few = {"points": (20,), "evaluation": 60, "start_points": 30, "components_points": 52, "max_steps": 2, "seeds": 1}
    few |= {"gammas": (1.0,), "betas": (4.0,), "widths": (1.0,), "resamples": 2, "spread_seeds": 2}
    for scale in scales.SIZES:
        # All scales are the same here, so that their runs are computed once.
        monkeypatch.setitem(scales.SIZES, scale, replace(scales.SIZES["quick"], **few))
        monkeypatch.setitem(_problems.SIZES, scale, replace(_problems.SIZES["quick"], **curves))
        monkeypatch.setitem(digits.SIZES, scale, replace(digits.SIZES["quick"], **images, fractions=(1.0,)))
    for name, found in registry.EXPERIMENTS.items():
        if isinstance(found, Study):
            monkeypatch.setitem(registry.EXPERIMENTS, name, replace(found, own_sizes={}))
    published = ConstrDRKM.paper
    steps = Penalty(inner=2, outer=2)
    monkeypatch.setattr(ConstrDRKM, "paper", lambda *given, **more: published(*given, **{**more, "solver": steps}))
    monkeypatch.setattr(downloads, "fetch", lambda file, where, progress: where / file.name)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets=None: [each.close() for each in sockets or ()])
    monkeypatch.setenv("DRKM_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def quick(line: str) -> list[str]:
    """Return the words of a command with options that make it short, and --force to replace earlier files."""
    first, *rest = shlex.split(line)
    written = rest[rest.index("-o") + 1] if "-o" in rest else ""
    leave = ["--force"] if written and Path(written).exists() and first not in ("report", "demo", "reproduce") else []
    return [*QUICKER.get(first, first).split(), *rest, *leave]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=[pytest.mark.slow] if any(line.startswith(LONG) for line in lines) else [])
        for name, lines in LINES.items()
    ],
)
@pytest.mark.timeout(1200)
# Fits to so few images give warnings.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_commands_of_a_page_run_one_after_the_other(page, small, tmp_path):
    FILES.get(page, of_forms)(tmp_path)
    for line in LINES[page]:
        done = drkm(*quick(line))
        assert done.code == (2 if line in REFUSED else 0), (line, done.err)
        assert done.out or done.err, line


@pytest.mark.slow
def test_completion_is_installed_for_a_shell(tmp_path):
    assert COMPLETION in lines_of(next(page for page in PAGES if page.name == "command-line.md"))
    place = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = [sys.executable, "-m", "drkm", COMPLETION, "bash"]
    done = subprocess.run(words, env=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "drkm" in (tmp_path / ".bashrc").read_text(encoding="utf-8")
