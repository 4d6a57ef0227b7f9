"""Nyström and Fourier features on rendered dSprites (d = 4096), s = (10, 5), RBF: accuracy, time and memory.

python -m benchmarks approximation                                  accuracy at n = 5,000, one fit at n = 10,000
python -m benchmarks approximation --n 100000 --threads 2           one fit on the CPU
python -m benchmarks approximation --device cuda                    accuracy, and one fit at n = 1,000,000 on the GPU
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from drkm import ConstrDRKM
from drkm.datasets.dsprites import RenderedDSprites
from drkm.gram import Dense, Fourier, Nystroem, Strategy
from drkm.problem.energy import Energy

SIZES = (10, 5)
TOL = 1e-4
ACCURACY_N, ACCURACY_M = 5_000, 500
SCALE_M = 2_000
#: images drawn by one task
BLOCK = 10_000
NEW_POINTS = 10_000


def sprites(n: int, seed: int = 0) -> np.ndarray:
    """Return n different images as rows of uint8, drawn on all cores."""
    grid = RenderedDSprites()
    if n > len(grid):
        grid = RenderedDSprites({"orientation": np.linspace(0, 2 * np.pi, 80, endpoint=False)})
    rows = np.random.default_rng(seed).choice(len(grid), n, replace=False)
    out = np.empty((n, 4096), dtype=np.uint8)

    def draw(begin: int) -> None:
        part = rows[begin : begin + BLOCK]
        out[begin : begin + BLOCK] = grid.images_at(grid.factors_at(part)).reshape(len(part), -1) > 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(draw, range(0, n, BLOCK)))
    return out


def fit(X: Tensor, gram: Strategy | str, device: str, dtype: str) -> tuple[ConstrDRKM, float]:
    clock = time.perf_counter()
    with warnings.catch_warnings():
        # The table shows which fits did not converge.
        warnings.simplefilter("ignore")
        model = ConstrDRKM(SIZES, eta=1.0, gram=gram, tol=TOL, device=device, dtype=dtype).fit(X)
    if device == "cuda":
        torch.cuda.synchronize()
    return model, time.perf_counter() - clock


def accuracy(device: str) -> None:
    """Compare J of approximate models, and exact J at their codes, with the exact optimum."""
    X = torch.from_numpy(sprites(ACCURACY_N))
    exact, seconds = fit(X, "dense", device, "float64")
    energy = Energy(X.double().to(device), exact.kernels_, SIZES, (1.0, 1.0), Dense())
    m = ACCURACY_M
    print(f"n = {ACCURACY_N:,}, float64, stationarity {TOL:g}, {device}; exact J = {exact.objective_:.3f}\n")
    print("| gram | own J / exact - 1 | exact J at its codes / exact - 1 | errors, layers 1 and 2 | iterations | s |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| dense | | | | {exact.n_iter_} | {seconds:.1f} |", flush=True)
    cases: dict[str, Strategy] = {
        f"Nystroem({m})": Nystroem(m),
        f'Nystroem({m}, "kmeans")': Nystroem(m, "kmeans"),
        f'Nystroem({m}, "rpcholesky")': Nystroem(m, "rpcholesky"),
        f"Nystroem({m}, deep=Fourier(500))": Nystroem(m, deep=Fourier(500)),
        f"Nystroem({m}, deep=Fourier(2000, orthogonal=False))": Nystroem(m, deep=Fourier(2000, orthogonal=False)),
        f"Nystroem({m}, deep=Dense())": Nystroem(m, deep=Dense()),
        "Fourier(2000)": Fourier(2000),
    }
    for name, gram in cases.items():
        model, seconds = fit(X, gram, device, "float64")
        own, true = (
            model.objective_ / exact.objective_ - 1,
            energy.value(model.fitted_.result.H) / exact.objective_ - 1,
        )
        errors = ", ".join("–" if error is None else f"{error:.1%}" for error in model.approximation_errors_)
        print(f"| {name} | {own:+.2%} | {true:+.2%} | {errors} | {model.n_iter_} | {seconds:.1f} |", flush=True)


def scale(n: int, device: str) -> None:
    """Time one fit with Nystroem(2000) and Fourier features above, in float32, and the encoding of new points."""
    clock = time.perf_counter()
    data = sprites(n + NEW_POINTS)
    drawing = time.perf_counter() - clock
    X, new = torch.from_numpy(data[:n]), torch.from_numpy(data[n:])
    if device == "cuda":
        torch.zeros(1, device=device)
        torch.cuda.reset_peak_memory_stats()
    clock = time.perf_counter()
    model, seconds = fit(X.to(device), Nystroem(SCALE_M), device, "float32")
    total = time.perf_counter() - clock
    clock = time.perf_counter()
    codes = model.transform(new.to(device))
    encoding = time.perf_counter() - clock
    assert torch.isfinite(codes).all()
    if device == "cuda":
        peak = f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB on the GPU"
    else:
        peak = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9:.2f} GB of the whole process"
    threads = f"{torch.get_num_threads()} threads" if device == "cpu" else torch.cuda.get_device_name()
    print(f"n = {n:,}, Nystroem({SCALE_M}), float32, stationarity {TOL:g}, {threads}")
    print(f"- drawing the images (not counted): {drawing:.1f} s")
    print(f"- training, from pixels to codes: {seconds:.1f} s ({total:.1f} s with the transfer to the device)")
    print(f"- peak memory, samples included: {peak}")
    print(f"- encoding {NEW_POINTS:,} new points: {encoding:.2f} s\n")
    print(model.summary(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--n", type=int, help="samples of the one fit; skips the table of accuracy")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--here", action="store_true", help="fit in this process instead of one of its own")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    n = asked.n or (1_000_000 if asked.device == "cuda" else 10_000)
    if asked.here:
        scale(n, asked.device)
        return
    if asked.n is None:
        accuracy(asked.device)
        print(flush=True)
    # In a separate process, whose peak memory is that of this fit alone.
    words = ["--here", "--n", str(n), "--device", asked.device, "--threads", str(asked.threads)]
    subprocess.run(
        [sys.executable, "-m", "benchmarks.approximation", *words], check=True, cwd=Path(__file__).parents[1]
    )


if __name__ == "__main__":
    main()
