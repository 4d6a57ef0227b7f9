"""The size of a fitted model on disk, in a pickle and in memory, and the time to read it.

python -m benchmarks.model_size               both tables
python -m benchmarks.model_size --load FILE   read one file in this process: one line of JSON

Sizes are relative to the bytes of the samples and the codes, for every `gram`, for digits and for samples with fewer
features than components. The model that is loaded has n = 20,000 samples of 64 features and codes of 10 and 5
components. Memory is the peak of the resident memory of a process above its value after a smaller model was read and
used, which triggers everything that libraries load lazily.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks.memory import CLEAR, resident
from benchmarks.problems import SIZES, structured
from drkm import ConstrDRKM, load
from drkm.gram import Dense, Fourier, Nystroem, Strategy, Tiled

N, D, NEW, NARROW = 20_000, 64, 10, 6
ROOT = Path(__file__).parents[1]


def strategies(n: int) -> list[Strategy]:
    """Return ways to form kernel matrices that store few or many numbers in a model."""
    return [Dense(), Tiled(memory=50e6), Nystroem(50), Nystroem(n, deep=Dense()), Nystroem(n), Fourier()]


def narrow(n: int) -> np.ndarray:
    """Return samples with fewer features than a model has components."""
    return structured(n).numpy()[:, :NARROW]


def sizes(X: np.ndarray, strategy: Strategy, folder: Path) -> tuple[float, float]:
    """Return the sizes of the file and of the pickle of a model, relative to samples and codes."""
    model = ConstrDRKM(SIZES, gram=strategy, eta=1.0, tol=1e-2).fit(X)
    model.save(folder / "model")
    base = X.nbytes + model.codes_.nbytes
    return os.path.getsize(folder / "model") / base, len(pickle.dumps(model)) / base


def written(folder: Path, n: int) -> Path:
    """Write a model of n samples, whose solver stops at its start: its quality does not matter here."""
    start = np.linalg.qr(np.random.RandomState(0).randn(n, sum(SIZES)))[0]
    options: dict[str, Any] = {"init": start, "eta": 1.0, "axes": None, "gram": Tiled(memory=400e6)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ConstrDRKM(SIZES, **options, callbacks=lambda entry: True).fit(structured(n).numpy()).save(folder / f"model{n}")
    return folder / f"model{n}"


def measure(path: Path, small: Path) -> dict[str, Any]:
    """Read a file and use the model once; return seconds, and bytes beyond those of the file."""
    points = structured(NEW).numpy()
    load(small).transform(points)
    gc.collect()
    size, found = path.stat().st_size, {}
    before = resident("VmRSS")
    CLEAR.write_text("5")
    clock = time.perf_counter()
    model = load(path)
    found["load"] = {"seconds": time.perf_counter() - clock, "beyond": resident("VmHWM") - before - size}
    clock = time.perf_counter()
    model.transform(points)
    found["transform"] = {"seconds": time.perf_counter() - clock, "beyond": resident("VmHWM") - before - size}
    return {"size": size, **found}


def in_own_process(path: Path, small: Path) -> dict[str, Any]:
    """Return the result of `measure` in a new process."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.model_size", "--load", str(path), str(small)]
    return json.loads(subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        print(json.dumps(measure(*given.load)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, digits = Path(name), load_digits().data / 16
        print("| n | d | gram | file | pickle |\n|---:|---:|---|---:|---:|")
        for X in (digits[:300], digits[:1500], narrow(400), narrow(1500)):
            for strategy in strategies(len(X)):
                file, pickled = sizes(X, strategy, folder)
                print(f"| {len(X):,} | {X.shape[1]} | `{strategy!r}` | {file:.2f} | {pickled:.2f} |", flush=True)
        path, small = written(folder, N), written(folder, 100)
        runs = [in_own_process(path, small) for _ in range(5)]
    size = runs[0]["size"] / 1e6
    print(f"\n| n = {N:,}, d = {D}, a file of {size:.1f} MB | seconds | MB beyond the file |\n|---|---:|---:|")
    for what in ("load", "transform"):
        seconds, beyond = (min(run[what][entry] for run in runs) for entry in ("seconds", "beyond"))
        title = "`load`" if what == "load" else f"and the first `transform`, of {NEW} points"
        print(f"| {title} | {seconds:.2f} | {beyond / 1e6:.0f} |")


if __name__ == "__main__":
    main()
