"""The lowest energy in equal time: several starts of the default solver against rivals with restarts.

python -m benchmarks best_energy            all cells (about an hour and a half)
python -m benchmarks.best_energy 400        one size
python -m benchmarks.best_energy 400:1      one pair of bandwidths of one size, counted from 0
python -m benchmarks.best_energy 3000:1 geoopt    against some rivals only
"""

from __future__ import annotations

import sys
import time
import warnings

import torch
from torch import Tensor

from benchmarks.problems import Problem
from benchmarks.rivals import Rival, asked
from drkm import starts, stiefel
from drkm.solvers import by_name, solve

#: time of all, in fits of the default solver
FITS = 15


def start(problem: Problem, number: int) -> Tensor:
    if number == 0:
        return problem.H
    return starts.further(problem.H, number, torch.Generator().manual_seed(number))


def best(problem: Problem, run: Rival, seconds: float) -> tuple[float, int]:
    """Return the lowest energy of as many starts as fit into the time, and their number."""
    clock, values = time.perf_counter(), []
    while (left := seconds - (time.perf_counter() - clock)) > 0:
        H = run(problem, start(problem, len(values)), left)[0]
        # Where a rival has left the manifold, the nearest feasible point counts.
        values.append(problem.energy.value(stiefel.polar(H)))
    return min(values), len(values)


def default(problem: Problem, H: Tensor, seconds: float) -> tuple[Tensor, float]:
    result = solve(by_name("auto", 2), problem.energy, H, max_seconds=seconds)
    return result.H, result.seconds


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    cells, rivals = asked(sys.argv[1:], (400, 800, 3000))
    print("| n | σ² | drkm: J (starts) |", " | ".join(f"{name}: J (starts)" for name in rivals), "|")
    print("|---|---|---|" + "---|" * len(rivals))
    for n, sigma2 in cells:
        problem = Problem.make(n, sigma2)
        seconds = FITS * default(problem, problem.H, 1e9)[1]
        found = []
        for run in (default, *rivals.values()):
            value, count = best(problem, run, seconds)
            found.append(f"{value:.3f} ({count})")
        print(f"| {n} | {sigma2[0]:g}, {sigma2[1]:.3g} | **{found[0]}** |", " | ".join(found[1:]), "|", flush=True)


if __name__ == "__main__":
    main()
