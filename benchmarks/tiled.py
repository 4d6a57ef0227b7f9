"""The tiled operator against the dense one at n = 3,000, and its memory at n = 20,000, on images (d = 4096).

python -m benchmarks tiled                      both
python -m benchmarks.tiled speed [n]            times of forming, start and one gradient, measured in turns
python -m benchmarks.tiled memory [n [bytes]]   peak of the process after two gradients within a budget, float64
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.images import write_sprites
from benchmarks.problems import SIZES
from benchmarks.scaling_cell import clock
from drkm.distributed import collectives
from drkm.files.rows import Rows, open_rows
from drkm.gram import Dense, Strategy, Tiled
from drkm.gram.cost import in_bytes
from drkm.kernels import RBF
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.training import starts

REPEATS = 5


def timed(work: Callable[..., object]) -> float:
    begin = clock("cpu")
    work()
    return clock("cpu") - begin


def energy_of(rows: Rows, strategy: Strategy) -> Energy:
    sigma2 = RBF("median").resolve(collectives.spread_rows(rows, 500), layer=1).sigma2
    return Energy(rows, [RBF(sigma2), RBF(2 * SIZES[0] / len(rows))], SIZES, (1.0, 1.0), strategy)


def speed(rows: Rows) -> None:
    """Print how much longer each part takes than with a stored matrix."""
    print(f"n = {len(rows)}, d = {rows.shape[1]}, float64, {torch.get_num_threads()} thread(s)\n")
    print("| operator | forming and start, s | gradient, ms | all of 100 gradients / dense |")
    print("|---|---:|---:|---:|")
    in_memory = Rows(rows.tensor().numpy())
    begun: dict[str, tuple[float, Energy, torch.Tensor]] = {}
    for name, strategy in {"dense": Dense(), "tiled": Tiled()}.items():
        begin = clock("cpu")
        energy = energy_of(in_memory, strategy)
        H = starts.kernel_pca(energy)
        begun[name] = clock("cpu") - begin, energy, H
    gradients: dict[str, list[float]] = {name: [] for name in begun}
    for _ in range(REPEATS):
        for name, (_, energy, H) in begun.items():
            gradients[name].append(timed(lambda e=energy, H=H: e.value_and_gradient(H)))
    total = {name: begun[name][0] + 100 * statistics.median(gradients[name]) for name in begun}
    for name, times in gradients.items():
        ratio = total[name] / total["dense"]
        print(f"| {name} | {begun[name][0]:.2f} | {1e3 * statistics.median(times):.0f} | {ratio:.2f} |", flush=True)


def memory(rows: Rows, budget: float) -> None:
    """Print the peak memory of the process after two gradients, with samples read from a file of bytes."""
    imports = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    energy = energy_of(rows, Tiled(memory=budget))
    print(f"n = {len(rows)}, d = {rows.shape[1]}, budget {in_bytes(budget)}: {energy.strategy.describe()}", flush=True)
    H = stiefel.polar(torch.randn(len(rows), sum(SIZES), dtype=torch.float64))
    seconds = [timed(lambda: energy.value_and_gradient(H)) for _ in range(2)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"first gradient {seconds[0]:.0f} s, second {seconds[1]:.0f} s")
    print(f"peak of the process {in_bytes(peak)}, of which {in_bytes(imports)} before the fit")


def main() -> None:
    words = sys.argv[1:] or ["speed", "memory"]
    numbers = [float(word) for word in words if word not in ("speed", "memory")]
    with tempfile.TemporaryDirectory() as folder:
        for what, n in (("memory", 20_000), ("speed", 3_000)):
            if what in words:
                path = Path(folder) / f"{what}.npy"
                write_sprites(path, int(numbers[0]) if numbers else n)
                rows = open_rows(path)
                memory(rows, numbers[1] if len(numbers) > 1 else 1.5e9) if what == "memory" else speed(rows)


if __name__ == "__main__":
    main()
