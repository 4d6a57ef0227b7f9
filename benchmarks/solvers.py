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
from drkm import stiefel
from drkm.solvers import by_name, solve

LIMIT = 20.0
REPEATS = {400: 5, 800: 3, 3000: 1}


def ours(n: int, sigma2: tuple[float, float]) -> tuple[float, float, Problem]:
    """Median time of a few runs from the samples, the energy, and the problem with its start."""
    times = []
    for _ in range(REPEATS.get(n, 1)):
        clock = time.perf_counter()
        problem = Problem.make(n, sigma2)
        result = solve(by_name("auto", 2), problem.energy, problem.H, tol=TOL)
        times.append(time.perf_counter() - clock)
        assert result.converged
    return statistics.median(times), result.objective, problem


def main() -> None:
    torch.set_num_threads(1)
    cells, rivals = asked(sys.argv[1:], tuple(REPEATS))
    print("| n | σ² | solver | time / ours | J | stationarity | feasibility |")
    print("|---|---|---|---:|---:|---:|---:|")
    for n, sigma2 in cells:
        seconds, value, problem = ours(n, sigma2)
        label = f"| {n} | {sigma2[0]:g}, {sigma2[1]:.3g} "
        print(f"{label}| **drkm** | 1 ({seconds:.3f} s) | {value:.4f} | ≤ 1e-6 | 0 |", flush=True)
        for name, rival in rivals.items():
            H, spent = rival(problem, problem.H, LIMIT * seconds)
            total = spent + problem.start_seconds
            reached = stationarity_of(problem, H)
            ratio = f"{total / seconds:.1f}" if reached <= 1.05 * TOL else f"> {min(total / seconds, LIMIT):.0f}"
            # Off the manifold J means nothing: the nearest feasible point counts.
            J, feasible = problem.energy.value(stiefel.polar(H)), stiefel.feasibility(H)
            print(f"{label}| {name} | {ratio} | {J:.4f} | {reached:.0e} | {feasible:.0e} |", flush=True)


if __name__ == "__main__":
    main()
