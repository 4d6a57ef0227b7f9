"""Whether a change of the code changed a number: results of models and metrics, to the last bit, on one machine.

python -m benchmarks.same_numbers dump before.npz      with the old code
python -m benchmarks.same_numbers dump after.npz       with the new code
python -m benchmarks.same_numbers compare before.npz after.npz

A dump holds codes, codes of new points, denoised and sampled points of every configuration, the same of `KernelPCA`,
all metrics, and the keys of all runs of the experiments. It takes about a minute. `compare` lists the differences and
ends with exit code 1 if there are any. Both dumps must come from one machine: other processors round differently.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM, KernelPCA, kernels, metrics
from drkm.experiments.request import Request
from drkm.gram import Dense, Fourier, Nystroem, Tiled

N, D, NEW = 70, 6, 8
TWO_LAYERS: dict[str, Any] = {"n_components": (4, 2), "kernel": "rbf"}
PRECOMPUTED = ("precomputed", "rbf")


def samples(n: int, seed: int = 0) -> np.ndarray:
    """Points on a curved surface, with noise."""
    random = np.random.RandomState(seed)
    z, F, b, A = random.rand(n, 2), 2 * random.randn(2, 20), 6.28 * random.rand(20), random.randn(20, D)
    return np.cos(z @ F + b) @ A / 20**0.5 + 0.05 * random.randn(n, D)


def features(x: torch.Tensor) -> torch.Tensor:
    """Explicit features that are not invariant under rotations."""
    return torch.cat([x, x.square(), torch.ones_like(x[:, :1])], dim=1)


def models() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield configurations by name: kernels × centring, strategies, solvers, precisions, depths."""
    first = ("rbf", "laplacian", "matern", "linear", "polynomial", "cosine")
    for name, center in itertools.product(first, (False, True)):
        yield f"one layer, {name}, center={center}", {"n_components": 4, "kernel": name, "center": center}
        deep = (name, "rbf" if name in ("linear", "cosine") else name)
        yield f"two layers, {name}, center={center}", {"n_components": (4, 2), "kernel": deep, "center": center}
    strategies = {
        "tiled": Tiled(keep=0),
        "nystroem": Nystroem(m=30),
        "exact above nystroem": Nystroem(m=30, landmarks="rpcholesky", deep=Tiled()),
        "fourier": Fourier(features=60),
    }
    for (name, gram), center in itertools.product(strategies.items(), (False, True)):
        yield f"{name}, center={center}", {**TWO_LAYERS, "gram": gram, "center": center}
    for solver in ("lbfgs", "trust-region", "projected-gradient", "augmented-lagrangian", "penalty"):
        yield f"solver {solver}", {**TWO_LAYERS, "solver": solver, "max_iter": 200}
        yield f"solver {solver}, float32", {**TWO_LAYERS, "solver": solver, "max_iter": 40, "dtype": "float32"}
    for center, dtype in itertools.product((False, True), ("float64", "float32")):
        options = {"n_components": (4, 3, 2), "kernel": "rbf", "center": center, "dtype": dtype}
        yield f"three layers, {dtype}, center={center}", options
    for name, gram in [("dense", Dense()), *strategies.items()]:
        yield f"learned bandwidths, {name}", {**TWO_LAYERS, "gram": gram, "learn_bandwidth": True}
    yield "learned bandwidths, penalty", {**TWO_LAYERS, "solver": "penalty", "learn_bandwidth": True}
    yield "explicit map", {"n_components": (4, 2), "kernel": ["rbf", kernels.FeatureMap(features)]}
    yield "explicit map first", {"n_components": 4, "kernel": kernels.FeatureMap(features, normalize=False)}
    yield "several starts", {**TWO_LAYERS, "n_init": 3, "init": "random"}
    yield "varimax, paper's encoder", {**TWO_LAYERS, "axes": "varimax", "encoder": "projection"}
    yield "precomputed", {"n_components": (4, 2), "kernel": PRECOMPUTED}


def of_model(parameters: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the results of a fit, and its results for new points."""
    X, new = samples(N), samples(N + NEW)[N:]
    given = parameters["kernel"] == PRECOMPUTED
    model = ConstrDRKM(**{"random_state": 0, "max_iter": 300, **parameters}).fit(X @ X.T if given else X)
    yield "codes", model.codes_
    yield "objective", np.array(model.objective_)
    yield "multipliers", model.multipliers_
    yield "transform", model.transform(new @ X.T if given else new)
    if not given:
        yield "denoise", model.denoise(new)
        yield "sample", model.sample(4, random_state=0)


def kernel_pcas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield configurations of `KernelPCA` by name: kernels × ways back from codes, solvers, strategies."""
    for name in ("linear", "poly", "rbf", "sigmoid", "cosine"):
        yield f"{name}, ridge", {"kernel": name, "preimage": "ridge"}
        if name != "sigmoid":
            yield f"{name}, gradient", {"kernel": name, "preimage": "gradient"}
    yield "fixed-point", {"kernel": "rbf", "preimage": "fixed-point"}
    for solver in ("dense", "arpack", "randomized"):
        yield f"solver {solver}", {"kernel": "rbf", "preimage": "ridge", "eigen_solver": solver}
    for name in ("tiled", "nystroem", "fourier"):
        yield name, {"kernel": "rbf", "preimage": "gradient", "gram": name}


def of_kernel_pca(parameters: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the results of a fit, which has enough samples for Lanczos, and its results for new points."""
    X, new = samples(4 * N), samples(4 * N + NEW)[4 * N :]
    for kind in (np.float64, np.float32):
        model = KernelPCA(4, random_state=0, **parameters).fit(X.astype(kind))
        codes = model.transform(new.astype(kind))
        found = {"eigenvalues": model.eigenvalues_, "eigenvectors": model.eigenvectors_, "transform": codes}
        found["inverse"] = model.inverse_transform(codes)
        yield from ((f"{name}, {np.dtype(kind)}", value) for name, value in found.items())


def of_metrics() -> Iterator[tuple[str, np.ndarray]]:
    """Yield all rows of the tables of metrics, for labels and for numbers, and the scores per factor."""
    random = np.random.RandomState(0)
    labels = np.stack([random.randint(3, size=150), random.randint(4, size=150)], axis=1)
    codes = np.c_[labels, random.randn(150, 2)] + 0.3 * random.randn(150, 4)
    for continuous, standardize in itertools.product((False, True), (False, True)):
        factors = labels + 0.1 * random.randn(*labels.shape) if continuous else labels
        found = metrics.evaluate(codes, factors, continuous=continuous, standardize=standardize, repeats=2)
        name = f"continuous={continuous}, standardize={standardize}"
        for row in found:
            yield f"{name}: {row.name}", np.array([row.score, row.chance, row.chance_sd])
        for part in found.by_factor:
            yield f"{name}: {part.name} of {part.factor}", np.array([part.score, part.chance])


def of_runs() -> Iterator[tuple[str, np.ndarray]]:
    """Yield hashes of the runs of each experiment and scale; together with data and version these form the keys."""
    for scale in ("quick", "medium", "paper"):
        for name, runs in Request(["all"], scale).runs.items():
            text = "\n".join(run.canonical() for run in runs)
            yield f"{name}, {scale}", np.array(hashlib.sha256(text.encode()).hexdigest())


def dump(path: str) -> None:
    """Write all numbers to one file."""
    torch.set_num_threads(1)
    found = {f"metrics / {name}": value for name, value in of_metrics()}
    found |= {f"runs / {name}": value for name, value in of_runs()}
    chosen = dict(models())
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for name, parameters in chosen.items():
            found |= {f"{name} / {part}": np.asarray(value) for part, value in of_model(parameters)}
    classical = dict(kernel_pcas())
    for name, parameters in classical.items():
        found |= {f"KernelPCA, {name} / {part}": value for part, value in of_kernel_pca(parameters)}
    arrays: dict[str, Any] = {name.replace("/", "|"): value for name, value in found.items()}
    np.savez(path, **arrays)
    print(f"{path}: {len(found)} arrays of {len(chosen) + len(classical)} models, the metrics and the runs")


def compare(before: str, after: str) -> int:
    """Print the arrays that differ between two files, and return their number."""
    with np.load(before) as one, np.load(after) as other:
        names = sorted({*one.files, *other.files})
        wrong = [name for name in names if name not in one or name not in other or not _same(one[name], other[name])]
    for name in wrong:
        print(f"differs: {name}")
    print(f"{len(names) - len(wrong)} of {len(names)} arrays agree in every bit")
    return len(wrong)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["dump", path]:
            dump(path)
            return 0
        case ["compare", before, after]:
            return min(compare(before, after), 1)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
