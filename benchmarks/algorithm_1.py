"""The energies that the paper's Algorithm 1 reaches from its two starts, against the constrained optimum.

python -m benchmarks algorithm_1
"""

from __future__ import annotations

import torch

from benchmarks.problems import Problem
from drkm.solvers import LBFGS, Penalty, solve
from drkm.training import starts


def main() -> None:
    torch.set_num_threads(1)
    print("| n | σ² | start | J reached | ‖HᵀH - I‖ | stationarity | Adam steps | J of the default solver |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for n, sigma2 in ((200, (50.0, 50.0)), (400, (50.0, 50.0)), (400, (50.0, 0.05)), (800, (50.0, 50.0))):
        problem = Problem.make(n, sigma2)
        optimum = solve(LBFGS(), problem.energy, problem.H).objective
        draws = {f"random, seed {seed}": starts.random(problem.energy, _seeded(seed)) for seed in range(2)}
        for name, H in {**draws, "kernel PCA": problem.H}.items():
            result = solve(Penalty(), problem.energy, H)
            row = f"{result.objective:.2f} | {result.feasibility:.1e} | {result.stationarity:.1e} | {result.n_iter}"
            print(f"| {n} | {sigma2[0]:g}, {sigma2[1]:g} | {name} | {row} | {optimum:.3f} |", flush=True)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


if __name__ == "__main__":
    main()
