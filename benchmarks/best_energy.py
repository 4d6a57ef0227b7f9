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
from drkm.problem import stiefel
from drkm.solvers import by_name, solve
from drkm.training import starts
from drkm.training.race import Race

#: time limit of every method, in units of one fit of the default solver
FITS = 15


def start(problem: Problem, number: int, length: float) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return starts.further(problem.energy, problem.H, length, generator) if number else problem.H


def best(problem: Problem, rival: Rival, seconds: float) -> tuple[float, int]:
    """Return the lowest energy of as many starts as fit into the time, alternately near and far, and their number."""
    clock = time.perf_counter()
    values: list[float] = []
    while (left := seconds - (time.perf_counter() - clock)) > 0:
        H = start(problem, len(values), starts.NEAR if len(values) % 2 else starts.FAR)
        H = rival(problem, H, left)[0]
        # If a rival has left the manifold, the nearest feasible point counts.
        values.append(problem.energy.value(stiefel.polar(H)))
    return min(values), len(values)


def own_best(problem: Problem, seconds: float) -> tuple[float, int]:
    """Return the same for the default solver, whose starts are chosen and abandoned as with `n_init`."""
    clock, race = time.perf_counter(), Race()
    while (left := seconds - (time.perf_counter() - clock)) > 0:
        H = start(problem, len(race.results), race.length)
        race.add(solve(by_name("auto", 2), problem.energy, H, max_seconds=left, abandon=race.is_behind))
    assert race.best is not None
    return race.best.objective, len(race.results)


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    cells, rivals = asked(sys.argv[1:], (400, 800, 3000))
    print("| n | σ² | drkm: J (starts) |", " | ".join(f"{name}: J (starts)" for name in rivals), "|")
    print("|---|---|---|" + "---|" * len(rivals))
    for n, sigma2 in cells:
        problem = Problem.make(n, sigma2)
        seconds = FITS * solve(by_name("auto", 2), problem.energy, problem.H).seconds
        each = [own_best(problem, seconds), *(best(problem, rival, seconds) for rival in rivals.values())]
        found = [f"{value:.3f} ({count})" for value, count in each]
        print(f"| {n} | {sigma2[0]:g}, {sigma2[1]:.3g} | **{found[0]}** |", " | ".join(found[1:]), "|", flush=True)


if __name__ == "__main__":
    main()
