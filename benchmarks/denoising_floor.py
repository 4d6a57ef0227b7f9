"""The least error of denoising that any setting of one and of two layers reaches, chosen with the clean points in view.

python -m benchmarks denoising_floor                                      one draw of 500 points a curve
python -m benchmarks denoising_floor --points 3000 --seeds 4,5,6 --jobs 16 --device cuda

What no selection can be below. The curves and noise levels are those of Table 1, errors are mean squared errors to the
clean points relative to that of the Bayes posterior mean. Two layers try 3 shares of the second layer kept where one
layer tries one number of components, so that chance is on their side.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from drkm.experiments._denoising import (
    DATASETS,
    DEEP_WIDTH,
    NOISES,
    base_model,
    make_problem,
    mean_squared_error,
    noise_of,
    posterior_mean,
)
from drkm.kernels import RBF
from drkm.selection import PREIMAGE_TOL

#: σ² of layer 1 relative to the noise variance
WIDTHS = (2.5, 3.5, 5.0, 8.0, 12.0)
#: fewest components at noise 0.2, and most: outside of these the errors are far higher
COMPONENTS = {"square": (5, 70), "half_circle": (3, 40), "square_spiral": (10, 130), "squares_spiral_ring": (18, 160)}
#: components of the first layer, and those kept of the second relative to them
FIRST = (3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50, 60, 75, 90)
SHARES = (0.25, 0.5, 0.75)


class Cell(NamedTuple):
    """One curve at one noise level, one draw."""

    dataset: str
    noise: float
    seed: int
    points: int
    device: str


def settings(cell: Cell) -> Iterator[tuple[float, tuple[int, ...], list[tuple[int, ...]]]]:
    """Yield relative bandwidths with the sizes of a fit and the components of each layer to keep of it."""
    fewest, most = COMPONENTS[cell.dataset]
    fewest = round(fewest * (0.2 / cell.noise) ** 0.8)
    for width in WIDTHS:
        counts = np.unique(np.geomspace(fewest, most, 30).round().astype(int)).tolist()
        yield width, (most,), [(count,) for count in counts]
        for s in FIRST:
            kept = {(s, max(1, round(share * s))) for share in SHARES}
            kept = {keep for keep in kept if fewest <= sum(keep) <= most}
            if kept:
                yield width, (s, s), sorted(kept)


def floors(cell: Cell) -> tuple[Cell, dict[int, float]]:
    """Return the least relative error of one and of two layers."""
    torch.set_num_threads(1)
    # The deep fits of Table 1 take a fixed number of steps.
    warnings.simplefilter("ignore", ConvergenceWarning)
    problem = make_problem(cell.dataset, cell.noise, cell.points, cell.points // 4, cell.seed)
    noise = noise_of(problem)
    bayes = mean_squared_error(posterior_mean(problem, problem.train), problem.clean)
    least = {1: np.inf, 2: np.inf}
    for width, sizes, kept in settings(cell):
        layers = len(sizes)
        widths = [width * noise**2, DEEP_WIDTH * 2 * sizes[0] / cell.points][:layers]
        kernels = [RBF(value) for value in widths]
        base = base_model(layers).set_params(n_components=sizes, kernel=kernels, device=cell.device)
        model = base.fit(problem.train)
        for keep in kept:
            components = [(layer, i) for layer, count in enumerate(keep, 1) for i in range(count)]
            found = model.reconstruct(problem.train, components, tol=PREIMAGE_TOL).points
            least[layers] = min(least[layers], mean_squared_error(found, problem.clean) / bayes)
    return cell, least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")], default=[4])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    # The longest curve first: its cells take longest.
    cells = [
        Cell(dataset, noise, seed, asked.points, asked.device)
        for dataset, noise, seed in itertools.product(reversed(DATASETS), NOISES, asked.seeds)
    ]
    with get_context("spawn").Pool(asked.jobs) as pool:
        found = dict(tqdm(pool.imap_unordered(floors, cells), total=len(cells), disable=None, leave=False))
    seeds = " | ".join(f"seed {seed}: one | two" for seed in asked.seeds)
    print(f"| curve | σ_n | {seeds} |\n|---|---|{'---:|---:|' * len(asked.seeds)}")
    for noise, dataset in itertools.product(NOISES, DATASETS):
        pairs = [found[Cell(dataset, noise, seed, asked.points, asked.device)] for seed in asked.seeds]
        print(f"| {DATASETS[dataset]} | {noise:g} | " + " | ".join(f"{p[1]:.3f} | {p[2]:.3f}" for p in pairs) + " |")
    for seed in asked.seeds:
        own = [least for cell, least in found.items() if cell.seed == seed]
        one, two = (np.mean([least[layers] for least in own]) for layers in (1, 2))
        wins = sum(least[2] <= least[1] for least in own)
        print(
            f"\nseed {seed}: {one:.4f} and {two:.4f} on average; two layers not above one in {wins} of {len(own)} cells"
        )


if __name__ == "__main__":
    main()
