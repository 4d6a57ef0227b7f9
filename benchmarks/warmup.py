"""The value of the warm-up: energy reached and number of evaluations, with and without it.

python -m benchmarks warmup
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from benchmarks.problems import SIZES, structured
from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.problem.energy import Energy
from drkm.solvers import LBFGS, Solver, TrustRegion, solve
from drkm.training import starts

DRAWS = 4


def draws(name: str) -> list[Tensor]:
    if name == "digits":
        X = torch.from_numpy(load_digits().data / 16)
        return [X[np.random.RandomState(seed).permutation(len(X))[:400]] for seed in range(DRAWS)]
    X = structured(400 * DRAWS)
    return list(X.split(400))


def main() -> None:
    torch.set_num_threads(1)
    solvers: dict[str, Solver] = {
        "with warm-up": LBFGS(),
        "without": LBFGS(warmup=False),
        "trust region": TrustRegion(),
    }
    print("| 400 samples | σ² | " + " | ".join(f"{name}: mean J (spread), evaluations" for name in solvers) + " |")
    print("|---|---|" + "---:|" * len(solvers))
    cases = [("digits", (2.0, 0.05)), ("digits", (2.0, 0.01)), ("digits", (5.0, 0.02))]
    cases += [("structured", (50.0, 50.0)), ("structured", (50.0, 0.05)), ("structured", (50.0, 0.01))]
    for name, sigma2 in cases:
        cells = []
        for solver in solvers.values():
            energies, evaluations = [], []
            for X in draws(name):
                energy = Energy(X, [RBF(width) for width in sigma2], SIZES, (1.0, 1.0), Dense())
                result = solve(solver, energy, starts.kernel_pca(energy))
                energies.append(result.objective)
                evaluations.append(energy.count.evaluations + 2 * energy.count.hessian_products)
            cells.append(f"{np.mean(energies):.2f} ({np.std(energies):.2f}), {np.mean(evaluations):.0f}")
        print(f"| {name} | {sigma2[0]:g}, {sigma2[1]:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
