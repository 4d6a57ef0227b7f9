"""The value of further starts: where they begin, and which are abandoned.

python -m benchmarks several_starts
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from benchmarks.problems import SIZES
from benchmarks.warmup import draws
from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.problem.energy import Energy
from drkm.solvers import Result, by_name, solve
from drkm.training import starts
from drkm.training.race import Race

CASES = [("digits", (2.0, 0.05)), ("digits", (2.0, 0.01)), ("digits", (5.0, 0.02))]
CASES += [("structured", (50.0, 0.05)), ("structured", (5.0, 0.05))]
KINDS = ("kernel PCA", "near", "far", "far, then gradient steps")
#: starts of each kind in the first table, n_init of the second
EACH, N_INIT = 8, 16


def problems(name: str, sigma2: Sequence[float]) -> list[tuple[Energy, Tensor]]:
    """Return the energy of each draw and its first start."""
    energies = [Energy(X, [RBF(width) for width in sigma2], SIZES, (1.0, 1.0), Dense()) for X in draws(name)]
    return [(energy, starts.kernel_pca(energy)) for energy in energies]


def solved(energy: Energy, H: Tensor, kind: str, seed: int) -> Result:
    """Return the result from a start of this kind, including the evaluations to find the start."""
    energy.count.evaluations = 0
    generator = torch.Generator().manual_seed(seed)
    if kind == "far":
        H = starts.perturbed(H, generator, starts.FAR)
    elif kind != "kernel PCA":
        H = starts.further(energy, H, starts.NEAR if kind == "near" else starts.FAR, generator)
    return solve(by_name("auto", 2), energy, H)


def raced(energy: Energy, H: Tensor, abandons: bool) -> tuple[float, int]:
    """Return the lowest energy of several starts and the evaluations of all."""
    race, spent = Race(), 0
    for number in range(N_INIT):
        energy.count.evaluations = 0
        start = starts.further(energy, H, race.length, torch.Generator().manual_seed(number)) if number else H
        race.add(solve(by_name("auto", 2), energy, start, abandon=race.is_behind if abandons else None))
        spent += energy.count.evaluations
    assert race.best is not None
    return race.best.objective, spent


def means(pairs: Sequence[tuple[float, int]]) -> str:
    energy, evaluations = np.mean(pairs, axis=0)
    return f"{energy:.2f}, {evaluations:.0f}"


def main() -> None:
    torch.set_num_threads(1)
    print("| 400 samples | σ² | " + " | ".join(KINDS) + " |\n|---|---|" + "---:|" * len(KINDS))
    for name, sigma2 in CASES:
        cells = []
        for kind in KINDS:
            seeds = range(1 if kind == "kernel PCA" else EACH)
            found = [solved(energy, H, kind, seed) for energy, H in problems(name, sigma2) for seed in seeds]
            cells.append(means([(result.objective, result.n_evaluations) for result in found]))
        print(f"| {name} | {sigma2[0]:g}, {sigma2[1]:g} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n| 400 samples | σ² | all {N_INIT} to their end | those behind abandoned |\n|---|---|---:|---:|")
    for name, sigma2 in CASES:
        cells = [
            means([raced(energy, H, abandons) for energy, H in problems(name, sigma2)]) for abandons in (False, True)
        ]
        print(f"| {name} | {sigma2[0]:g}, {sigma2[1]:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
