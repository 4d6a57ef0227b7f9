"""The memory of a fit with `Tiled(memory=…)`, for every option of the estimator.

python -m benchmarks.memory [name …]          a table of all cases, or of those named, each in a separate process
python -m benchmarks.memory --case NAME       one case in this process: one line of JSON

The peak is that of the resident memory of the process above its value after the imports and a tiny fit with the same
settings, which triggers everything that libraries load lazily. n = 6,000 samples of 64 features, layers of 10 and 5
components, a dozen iterations: enough to fill the memory of every solver.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.problems import SIZES, structured
from drkm import ConstrDRKM, load
from drkm.gram import NotEnoughMemory, Tiled
from drkm.kernels import RBF, Cosine, FeatureMap, Laplacian, Linear, Matern, Polynomial
from drkm.solvers import Penalty

N, D, ITERATIONS = 6000, 64, 12
#: the guarantee: the peak is at most this many times the budget
ALLOWED = 1.1
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Case:
    """One use of the estimator: its settings, where its samples come from, and what follows the fit.

    `data` is "array", "npy" or "h5"; `images` have 4,096 features of one byte each. `use` is called with the model and
    the source of new points.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    budget: float = 100e6
    data: str = "array"
    n: int = N
    images: bool = False
    use: Callable[[Any, Any, Path], Any] = lambda model, points, folder: None
    refused: bool = False


def _waves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.sin(), x.cos()], dim=1)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return (x[:, :, None] * torch.arange(1, 1 + 1000 // x.shape[1], dtype=x.dtype)).flatten(1).cos()


def _module(inputs: int, hidden: int = 16) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 8)).double()


def _orthonormal(n: int) -> np.ndarray:
    return np.linalg.qr(np.random.RandomState(0).randn(n, sum(SIZES)))[0]


def _transform(model: Any, points: Any, folder: Path) -> None:
    model.transform(points)


def _denoise(model: Any, points: Any, folder: Path) -> None:
    model.denoise(points)


def _transform_and_denoise(model: Any, points: Any, folder: Path) -> None:
    model.transform(points)
    model.denoise(points[:50])


def _denoise_by_ridge(model: Any, points: Any, folder: Path) -> None:
    model.denoise(points, method="ridge")


def _denoise_into_a_file(model: Any, points: Any, folder: Path) -> None:
    points = points[:100]
    shape = (len(points), model.n_features_in_)
    model.denoise(points, out=np.lib.format.open_memmap(folder / "out.npy", mode="w+", shape=shape))


def _transform_after_loading(model: Any, points: Any, folder: Path) -> None:
    model.save(folder / "model")
    load(folder / "model").transform(points)


LONG = {"max_seconds": 20.0}
CASES: dict[str, Case] = {
    "plain": Case(),
    "budget 150 MB": Case(budget=150e6),
    "all tiles kept": Case(budget=400e6),
    "too small a budget": Case(budget=20e6, refused=True),
    "too small a budget, median rule of images": Case(budget=20e6, images=True, n=2000, data="npy", refused=True),
    "center": Case({"center": True}),
    "learn_bandwidth": Case({"learn_bandwidth": True, **LONG}),
    "learn_bandwidth, center": Case({"learn_bandwidth": True, "center": True, **LONG}),
    "learn_bandwidth, Laplacian": Case({"learn_bandwidth": True, "kernel": [Laplacian(), RBF()], **LONG}),
    "n_init=2": Case({"n_init": 2}),
    "n_init=4, center": Case({"n_init": 4, "center": True, "max_iter": 4}),
    "init=random": Case({"init": "random"}),
    "init=orthogonal": Case({"init": "orthogonal", "n_init": 2}),
    "init=array": Case({"init": "given"}),
    "trust-region": Case({"solver": "trust-region", "max_iter": 3}),
    "projected-gradient": Case({"solver": "projected-gradient"}),
    "penalty": Case({"solver": Penalty(inner=10, outer=2)}),
    "penalty, learn_bandwidth": Case({"solver": Penalty(inner=4, outer=2), "learn_bandwidth": True}),
    "augmented-lagrangian": Case({"solver": "augmented-lagrangian", "max_iter": 40}),
    "axes=varimax": Case({"axes": "varimax"}),
    "axes=ica": Case({"axes": "ica"}),
    "axes=None": Case({"axes": None}),
    "encoder=projection": Case({"encoder": "projection"}),
    "float32": Case({"dtype": "float32"}, budget=60e6),
    "Laplacian": Case({"kernel": Laplacian()}),
    "Matern": Case({"kernel": Matern()}),
    "Polynomial": Case({"kernel": [Polynomial(), RBF()]}),
    "Polynomial above": Case({"kernel": [RBF(), Polynomial(2)]}),
    "Linear": Case({"kernel": [Linear(), RBF()]}),
    "Cosine": Case({"kernel": [Cosine(), RBF()]}),
    "FeatureMap": Case({"kernel": [FeatureMap(_waves), RBF()]}),
    "FeatureMap above": Case({"kernel": [RBF(), FeatureMap(_module(10))]}),
    "FeatureMap trained": Case({"kernel": [FeatureMap(_module(D), trainable=True), RBF()], **LONG}),
    "FeatureMap of 960 features": Case({"kernel": [FeatureMap(_wide), RBF()]}, budget=200e6),
    "FeatureMap of 960 features, from npy": Case({"kernel": [FeatureMap(_wide), RBF()]}, budget=200e6, data="npy"),
    "FeatureMap of 1,000 features above": Case({"kernel": [RBF(), FeatureMap(_wide)]}, budget=200e6),
    "FeatureMap with 500 hidden units, trained": Case(
        {"kernel": [FeatureMap(_module(D, 500), trainable=True), RBF()], **LONG}
    ),
    "one layer": Case({"n_components": 10}),
    "one layer, center": Case({"n_components": 10, "center": True}),
    "one component": Case({"n_components": 1}),
    "three layers": Case({"n_components": (10, 5, 3)}, budget=120e6),
    "many components": Case({"n_components": (40, 20), "max_iter": 12}, budget=340e6),
    "checkpoint": Case({"checkpoint": "file"}),
    "callbacks": Case({"callbacks": [lambda entry: None]}),
    "fit from npy": Case(data="npy"),
    "fit from HDF5": Case(data="h5"),
    "fit from npy, learn_bandwidth": Case({"learn_bandwidth": True, **LONG}, data="npy"),
    "fit from npy, Cosine": Case({"kernel": [Cosine(), RBF()]}, data="npy"),
    "transform, array": Case(use=_transform),
    "transform from npy": Case(use=_transform, data="npy"),
    "transform from HDF5": Case(use=_transform, data="h5"),
    "transform from npy, center": Case({"center": True}, use=_transform, data="npy"),
    "transform from npy, projection": Case({"encoder": "projection"}, use=_transform, data="npy"),
    "transform from npy, Laplacian": Case({"kernel": [Laplacian(), RBF()]}, use=_transform, data="npy"),
    "transform from npy, Cosine": Case({"kernel": [Cosine(), RBF()]}, use=_transform, data="npy"),
    "transform after loading": Case(use=_transform_after_loading),
    "denoise from npy": Case(use=_denoise, data="npy"),
    "denoise from HDF5": Case(use=_denoise, data="h5"),
    "denoise from npy, one component": Case({"n_components": 1}, use=_denoise, data="npy"),
    "denoise from npy, Polynomial": Case({"kernel": [Polynomial(2), RBF()]}, use=_denoise, data="npy"),
    # needs the eigenvectors of a 2,000×2,000 matrix, whatever the budget
    "denoise by ridge": Case(use=_denoise_by_ridge, data="npy", budget=400e6),
    "denoise by ridge, too small a budget": Case(use=_denoise_by_ridge, data="npy", refused=True),
    "inverse_transform": Case(use=lambda model, points, _: model.inverse_transform(model.codes_)),
    "score from npy": Case(use=lambda model, points, _: model.score(points), data="npy"),
    "encode": Case(use=lambda model, points, _: model.encode(points)),
    "sample and traverse": Case(use=lambda model, points, _: (model.sample(50), model.traverse(1, 0, [0.0, 0.01]))),
    "small: two starts, centred, used from npy": Case(
        {"center": True, "n_init": 2, "max_iter": 2}, n=2000, budget=60e6, data="npy", use=_transform_and_denoise
    ),
    "small: learn_bandwidth": Case({"learn_bandwidth": True, "max_seconds": 3.0}, n=2000, budget=50e6),
    "images from npy": Case(images=True, data="npy", budget=400e6, settings={"max_iter": 3}),
    "images from npy, transform": Case(
        images=True,
        data="npy",
        budget=400e6,
        settings={"max_iter": 3},
        use=lambda model, X, _: model.transform(X[:2000]),
    ),
    "images from npy, denoise": Case(
        images=True, data="npy", budget=400e6, settings={"max_iter": 2}, use=_denoise_into_a_file
    ),
}


def measure(case: Case) -> dict[str, Any]:
    """Run a case in this process and return its peak above the imports, and how it ended."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(case, 300, folder, None)
        source = _source(case, case.n, folder)
        gc.collect()
        with suppress(OSError, AttributeError):
            # Otherwise memory that the tiny fit left in the allocator's free lists would hide some of the peak.
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        before = resident("VmRSS")
        CLEAR.write_text("5")
        ended = _run(case, case.n, folder, source)
        return {"budget": case.budget, "peak": resident("VmHWM") - before, "ended": ended}


def _run(case: Case, n: int, folder: Path, source: Any) -> str:
    small = source is None
    source = _source(case, n, folder) if small else source
    settings = {"n_components": SIZES, "max_iter": ITERATIONS, **case.settings}
    if settings.get("init") == "given":
        settings["init"] = _orthonormal(n)
    if settings.get("checkpoint"):
        settings["checkpoint"] = folder / f"checkpoint{n}"
    gram = Tiled(memory=None if small else case.budget)
    try:
        model = ConstrDRKM(**settings, random_state=0, gram=gram, device="cpu").fit(source)
        case.use(model, source, folder)
    except NotEnoughMemory as error:
        return f"refused: {error}"
    return f"{model.fitted_.result.status.value}, {model.fitted_.operator}"


def _source(case: Case, n: int, folder: Path) -> Any:
    """Return the samples: an array, a memory map or an HDF5 dataset."""
    X = np.random.RandomState(0).randint(0, 2, (n, 4096), dtype=np.uint8) if case.images else structured(n).numpy()
    if case.data == "npy":
        np.save(folder / f"{n}.npy", X)
        return np.load(folder / f"{n}.npy", mmap_mode="r")
    if case.data == "h5":
        import h5py

        with h5py.File(folder / f"{n}.h5", "w") as file:
            file["samples"] = X
        return h5py.File(folder / f"{n}.h5", "r")["samples"]
    return X


def resident(entry: str) -> int:
    """Return the resident memory of this process, or the largest since it was last cleared, in bytes."""
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(entry))
    return int(line.split()[1]) * 1024


def in_own_process(name: str, timeout: float = 900) -> dict[str, Any]:
    """Return the measurements of a case in a separate process."""
    command = [sys.executable, "-m", "benchmarks.memory", "--case", name]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--case")
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(measure(CASES[asked.case])))
        return
    print("| case | budget | peak | peak / budget | ended |\n|---|---:|---:|---:|---|", flush=True)
    for name in asked.names or CASES:
        try:
            cell = in_own_process(name)
        except RuntimeError as error:
            print(f"| {name} | failed: {str(error).splitlines()[-1]} |", flush=True)
            continue
        budget, peak = cell["budget"], cell["peak"]
        print(
            f"| {name} | {budget / 1e6:.0f} MB | {peak / 1e6:.1f} MB | {peak / budget:.2f} | {cell['ended']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
