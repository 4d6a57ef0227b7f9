"""Whether weighted components lower the denoising error on the curves of Table 1, chosen using the clean points.

python -m benchmarks shrinkage_floor                     one draw of 1,000 points per curve
python -m benchmarks shrinkage_floor --points 3000 --seeds 4,5,6

The least mean squared error of one layer over bandwidths and numbers of components (cut off), and over bandwidths and
thresholds (soft, firm), relative to that of the Bayes posterior mean.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import torch

from drkm.experiments.denoising._problems import (
    DATASETS,
    NOISES,
    make_problem,
    mean_squared_error,
    noise_of,
    posterior_mean,
)
from drkm.inference.eigencomponents import EigenComponents
from drkm.kernels import RBF
from drkm.problem.shrinkage import Shrinkage

#: σ² relative to the noise variance, and ranks of thresholds and cut-offs
WIDTHS = (2.5, 3.5, 5.0, 8.0, 12.0)
RANKS = np.unique(np.geomspace(4, 140, 16).round().astype(int))
#: thresholds go down the spectrum to this many times the largest number of components kept
DEEPEST = 3


def least_errors(dataset: str, noise: float, seed: int, points: int) -> dict[str, float]:
    """Return the least errors of each kind of weights, relative to the Bayes error."""
    problem = make_problem(dataset, noise, points, points // 4, seed)
    variance = noise_of(problem) ** 2
    bound = mean_squared_error(posterior_mean(problem, problem.train), problem.clean)
    X = torch.from_numpy(problem.train)
    errors: dict[str, list[float]] = {"hard": [], "soft": [], "firm": []}
    for width in WIDTHS:
        eigen = EigenComponents(RBF(width * variance), X, rank=DEEPEST * int(RANKS[-1]) + 1)
        for kind, found in errors.items():
            for rank in RANKS if kind == "hard" else np.unique((RANKS * DEEPEST**0.5).round().astype(int)):
                shrink = Shrinkage(float(eigen.values[rank]), kind)
                found.append(mean_squared_error(eigen.denoise(shrink).numpy(), problem.clean) / bound)
    return {kind: min(found) for kind, found in errors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")], default=[4])
    asked = parser.parse_args()
    print("| curve | σ_n | seed | cut off | soft | firm |\n|---|---|---|---:|---:|---:|", flush=True)
    rows = []
    for noise, dataset, seed in itertools.product(NOISES, DATASETS, asked.seeds):
        rows.append(least_errors(dataset, noise, seed, asked.points))
        told = " | ".join(f"{rows[-1][kind]:.4f}" for kind in ("hard", "soft", "firm"))
        print(f"| {DATASETS[dataset]} | {noise:g} | {seed} | {told} |", flush=True)
    means = ", ".join(f"{kind} {np.mean([row[kind] for row in rows]):.4f}" for kind in ("hard", "soft", "firm"))
    print(f"\nOn average: {means}.")


if __name__ == "__main__":
    main()
