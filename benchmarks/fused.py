"""The fused operator on an NVIDIA GPU: one gradient compared with sweeps in torch and in float64, and training from X.

python -m benchmarks.fused                        both tables; about 3 minutes on an H200, 60 GB of its memory
python -m benchmarks.fused gradient 100000        some sample sizes only
python -m benchmarks.fused training 20000

Rendered dSprites (d = 4096), s = (10, 5), RBF kernels with the bandwidths (median, scale), float32.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch import Tensor

from drkm import ConstrDRKM
from drkm.datasets import load_dsprites
from drkm.files.rows import Rows
from drkm.gram import Dense, Fused, Gram, StoredGram, Tiled
from drkm.kernels import RBF, Kernel
from drkm.problem.energy import Energy
from drkm.training import starts

SIZES, ETA = (10, 5), (1.0, 1.0)
TOL = 1e-4
#: peak rates of an H200 from its data sheet: memory bytes/s, float32 instructions/s (a multiply-add is one)
BANDWIDTH, INSTRUCTIONS = 4.8e12, 33.5e12


class Shared(Dense):
    """Sweeps in torch with an existing Gram matrix of the first layer."""

    def __init__(self, K: Tensor):
        self.K = K

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        return StoredGram(self.K)


def sprites(n: int) -> np.ndarray:
    """Return n images as rows of float32 between 0 and 1, drawn on all cores."""
    rows = np.random.default_rng(0).choice(len(load_dsprites(source="rendered")), n, replace=False)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(_draw, np.array_split(rows, 4 * (os.cpu_count() or 1))))
    return np.concatenate(parts).astype(np.float32) / np.float32(255)


def _draw(rows: np.ndarray) -> np.ndarray:
    dataset = load_dsprites(source="rendered")
    return dataset.images_at(dataset.factors_at(rows)).reshape(len(rows), -1)


def milliseconds(run: Callable[..., object], repeats: int) -> float:
    """Return the median time of a few runs after one that compiles."""
    run()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def peak_above(run: Callable[..., object]) -> float:
    """Return the peak memory of a call above what was allocated before it, in GB."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - held) / 1e9


def roofline(n: int) -> float:
    """Return the least time of one gradient in ms.

    K_1 is read once from memory. A pair of the sweep takes 3s_1 + 2s_2 + 2 arithmetic instructions, a multiply-add
    being one: differences, their squares, ⟨a_i, a_j⟩, the weight, and the sums of product, pull and weight. Its power
    of 2 is computed by another unit in parallel.
    """
    s, t = SIZES
    return 1e3 * n**2 * (4 / BANDWIDTH + (3 * s + 2 * t + 2) / INSTRUCTIONS)


def gradient(n: int) -> None:
    X = torch.from_numpy(sprites(n)).cuda()
    kernels = [RBF("median").resolve(X, layer=1), RBF(2.0 * SIZES[0] / n)]
    made: list[Energy] = []
    clock = time.perf_counter()
    held = peak_above(lambda: made.append(Energy(X, kernels, SIZES, ETA, Fused())))
    seconds = time.perf_counter() - clock
    energy = made[0]
    print(f"n = {n}, σ² = {kernels[0].sigma2:.4g}, {kernels[1].sigma2:.4g}")
    print(f"K_1: {4e-9 * n**2:.1f} GB, formed in {seconds:.2f} s with a peak of {held:.1f} GB beside X\n")
    H = starts.kernel_pca(energy)
    exact = Energy(X.double(), kernels, SIZES, ETA, Tiled(keep=0)).value_and_gradient(H.double()).gradient
    stored = energy.first_uncentered
    assert isinstance(stored, StoredGram)
    rivals = {
        "**fused**": energy,
        "torch sweeps, the same K₁": Energy(X, kernels, SIZES, ETA, Shared(stored.K)),
        "tiled, all tiles kept": Energy(X, kernels, SIZES, ETA, Tiled(keep=4 * n * n)),
        "fused, K₁ recomputed": Energy(X, kernels, SIZES, ETA, Fused(Tiled(keep=0))),
        "tiled, K₁ recomputed": Energy(X, kernels, SIZES, ETA, Tiled(keep=0)),
    }
    print("| operator | gradient, ms | layer 1, ms | layer 2, ms | relative error | peak above K₁ and X, GB |")
    print("|---|---:|---:|---:|---:|---:|")
    times = {}
    for name, rival in rivals.items():
        repeats = 2 if name.endswith("recomputed") else 20
        # The first call fills the cache of tiles, so that the peak of the second is that of a gradient.
        error = float((rival.value_and_gradient(H).gradient.double() - exact).norm() / exact.norm())
        first = milliseconds(lambda rival=rival: rival.first.matmul(H[:, : SIZES[0]]), repeats)
        second = milliseconds(lambda rival=rival: rival.moving(1, H).sums(H[:, SIZES[0] :]), repeats)
        times[name] = milliseconds(lambda rival=rival: rival.value_and_gradient(H), repeats)
        peak = peak_above(lambda rival=rival: rival.value_and_gradient(H))
        print(f"| {name} | {times[name]:.1f} | {first:.1f} | {second:.1f} | {error:.1e} | {peak:.2f} |", flush=True)
    ours, torch_sweeps, tiled = list(times.values())[:3]
    print(f"\n{torch_sweeps / ours:.1f} times faster than the sweeps in torch, {tiled / ours:.1f} times than tiled")
    print(f"roofline {roofline(n):.1f} ms: {100 * roofline(n) / ours:.0f} % of it reached\n")


def training(n: int) -> None:
    X = sprites(n)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    clock = time.perf_counter()
    model = ConstrDRKM(SIZES, eta=1.0, gram="fused", device="cuda", dtype="float32", tol=TOL).fit(X)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - clock
    # The fit continues until the codes of the encoder are as accurate as the gradient.
    reached = next(entry["seconds"] for entry in model.history_ if entry["stationarity"] <= TOL)
    result = model.fitted_.result
    print(
        f"| {n} | {seconds - result.seconds + reached:.1f} | {seconds:.1f} | {model.n_iter_} | {result.n_evaluations} "
        f"| {model.stationarity_:.1e} | {model.feasibility_:.1e} | {model.objective_:.2f} "
        f"| {torch.cuda.max_memory_allocated() / 1e9:.1f} | {model.fitted_.cost.bytes / 1e9:.1f} |",
        flush=True,
    )


def main() -> None:
    what, *words = sys.argv[1:] or ["all"]
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device")
    torch.cuda.init()
    print(torch.cuda.get_device_name(), "\n")
    if what in ("all", "gradient"):
        for n in [int(word) for word in words] or [100_000]:
            gradient(n)
    if what in ("all", "training"):
        print("| n | s to stationarity 1e-4, all included | s of the fit | iterations | evaluations | stationarity "
              "| feasibility | J | peak, GB | foreseen, GB |")  # fmt: skip
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        for n in [int(word) for word in words] or [20_000, 100_000]:
            training(n)


if __name__ == "__main__":
    main()
