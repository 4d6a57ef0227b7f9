"""Time to stationarity 1e-6 from the samples, start included: the default solver against its rivals.

python -m benchmarks solvers            all cells (about three quarters of an hour: a rival gets 20 times our time)
python -m benchmarks.solvers 400 800    some sample sizes only
python -m benchmarks.solvers 3000:1     one pair of bandwidths of one size, counted from 0
python -m benchmarks.solvers 3000:1 geoopt pymanopt     against some rivals only
"""

from __future__ import annotations

import statistics
import sys
import time

import torch

from benchmarks.problems import Problem
from benchmarks.rivals import TOL, asked, stationarity_of
from drkm.problem import stiefel
from drkm.solvers import by_name, solve

LIMIT = 20.0
REPEATS = {400: 5, 800: 5, 3000: 1}


def once(n: int, sigma2: tuple[float, float]) -> tuple[float, float, Problem]:
    """Return the seconds of a whole fit, the energy, and the problem with its start."""
    clock = time.perf_counter()
    problem = Problem.make(n, sigma2)
    result = solve(by_name("auto", 2), problem.energy, problem.H, tol=TOL)
    assert result.converged
    return time.perf_counter() - clock, result.objective, problem


def main() -> None:
    torch.set_num_threads(1)
    cells, rivals = asked(sys.argv[1:], tuple(REPEATS))
    print("| n | σ² | solver | time / ours | J | stationarity | feasibility |")
    print("|---|---|---|---:|---:|---:|---:|")
    for n, sigma2 in cells:
        repeats = REPEATS.get(n, 1)
        runs = [once(n, sigma2) for _ in range(repeats)]
        seconds, (_, value, problem) = statistics.median(run[0] for run in runs), runs[-1]
        label = f"| {n} | {sigma2[0]:g}, {sigma2[1]:.3g} "
        print(f"{label}| **drkm** | 1 ({seconds:.3f} s) | {value:.4f} | ≤ 1e-6 | 0 |", flush=True)
        for name, rival in rivals.items():
            H, spent = rival(problem, problem.H, LIMIT * seconds)
            reached = stationarity_of(problem, H)
            ratio = f"> {min((spent + problem.start_seconds) / seconds, LIMIT):.0f}"
            if reached <= 1.05 * TOL:
                # Alternately, so that other work on the machine affects both.
                turns = [(spent, seconds)]
                for _ in range(repeats - 1):
                    turns.append((rival(problem, problem.H, LIMIT * seconds)[1], once(n, sigma2)[0]))
                rivals_time, own_time = (statistics.median(times) for times in zip(*turns, strict=True))
                ratio = f"{(rivals_time + problem.start_seconds) / own_time:.1f}"
            # Off the manifold J is meaningless: the nearest feasible point counts.
            J, feasible = problem.energy.value(stiefel.polar(H)), stiefel.feasibility(H)
            print(f"{label}| {name} | {ratio} | {J:.4f} | {reached:.0e} | {feasible:.0e} |", flush=True)


if __name__ == "__main__":
    main()
