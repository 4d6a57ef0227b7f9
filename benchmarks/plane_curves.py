"""Plane curves of no experiment: how well their noise is estimated, and how much of it the best denoiser leaves.

python -m benchmarks plane_curves                     13 curves on which the estimate of the noise was developed
python -m benchmarks plane_curves --curves judged     three on which it was judged
python -m benchmarks plane_curves --curves checked    three that were run once, after all choices were made
python -m benchmarks plane_curves --seeds 0,1,2

Estimates are relative to the noise that was added, one per seed. The best denoiser is the Bayes posterior mean, which
knows the curve and the noise; the part of the noise that it leaves is that of the first seed.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from drkm.selection import estimate_noise

POINTS, LEVELS = 1200, (0.1, 0.2)
#: nodes on the curve for the posterior mean, and number of blocks of points
PLACES, BLOCKS = 20_000, 20

#: a curve from positions between 0 and 1
Curve = Callable[[np.ndarray], np.ndarray]


def _plane(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.column_stack([x, y])


def lissajous(a: int, b: int, phase: float) -> Curve:
    return lambda u: 1.5 * _plane(np.sin(2 * np.pi * a * u), np.sin(2 * np.pi * b * u + phase))


def rose(u: np.ndarray) -> np.ndarray:
    return _around(1.5 * np.cos(6 * np.pi * u), u)


def waves(u: np.ndarray) -> np.ndarray:
    return _plane(6 * u - 3, 0.8 * np.sin(18 * u - 9))


def _around(radius: np.ndarray, turns: np.ndarray) -> np.ndarray:
    return radius[:, None] * _plane(np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns))


def epitrochoid(size: float, inner: float, reach: float, petals: int) -> Curve:
    def points(u: np.ndarray) -> np.ndarray:
        circle, loops = np.exp(2j * np.pi * u), np.exp(2j * np.pi * petals * u)
        path = size * (inner * circle - reach * loops)
        return _plane(path.real, path.imag)

    return points


def pieces(*parts: Curve) -> Curve:
    """Return a curve of several parts, each with an equal share of the positions."""

    def points(u: np.ndarray) -> np.ndarray:
        which = np.minimum((len(parts) * u).astype(int), len(parts) - 1)
        return np.select([which[:, None] == k for k in range(len(parts))], [part(len(parts) * u % 1) for part in parts])

    return points


def segment(x0: float, y0: float, x1: float, y1: float) -> Curve:
    return lambda u: _plane(x0 + u * (x1 - x0), y0 + u * (y1 - y0))


def ellipse(x: float, y: float, width: float, height: float) -> Curve:
    return lambda u: _plane(x + width * np.cos(2 * np.pi * u), y + height * np.sin(2 * np.pi * u))


def heart(u: np.ndarray) -> np.ndarray:
    a = 2 * np.pi * u
    height = 13 * np.cos(a) - 5 * np.cos(2 * a) - 2 * np.cos(3 * a) - np.cos(4 * a)
    return 0.1 * _plane(16 * np.sin(a) ** 3, height)


def lemniscate(u: np.ndarray) -> np.ndarray:
    sine, cosine = np.sin(2 * np.pi * u), np.cos(2 * np.pi * u)
    return 1.8 * _plane(cosine, sine * cosine) / (1 + sine**2)[:, None]


def limacon(u: np.ndarray) -> np.ndarray:
    return _around(0.9 + 1.4 * np.cos(2 * np.pi * u), u)


def trefoil(u: np.ndarray) -> np.ndarray:
    a = 2 * np.pi * u
    return 0.9 * _plane(np.sin(a) + 1.1 * np.sin(2 * a), np.cos(a) - 1.1 * np.cos(2 * a))


def stairs(u: np.ndarray) -> np.ndarray:
    """Return points of four quarter circles, joined by corners."""
    step = np.minimum((4 * u).astype(int), 3)
    angle = (4 * u - step) * np.pi / 2
    return _plane(step - 2 + np.sin(angle), step - 1 - np.cos(angle))


ZIGZAG = [(x, 0.8 if k % 2 else -0.8) for k, x in enumerate(np.linspace(-2, 2, 7))]
DEVELOPED: dict[str, Curve] = {
    "lissajous 1:2": lissajous(1, 2, 0.0),
    "lissajous 5:4": lissajous(5, 4, 0.3),
    "epitrochoid 4": epitrochoid(0.5, 3.0, 1.2, 4),
    "epitrochoid 5": epitrochoid(0.35, 5.0, 1.8, 5),
    "spiral": lambda u: _around(0.3 + 1.5 * u, 2 * u),
    "long spiral": lambda u: _around(0.2 + 2.2 * u, 3 * u),
    "segments": pieces(segment(-1.5, -1, 1.5, -1), segment(-1, 1, 1.2, 0.2), segment(0, 1.5, 1.5, 1.2)),
    "two circles": pieces(ellipse(-0.9, 0, 0.8, 0.8), ellipse(0.9, 0.3, 0.6, 0.6)),
    "rings": pieces(ellipse(0, 0, 1.5, 1.5), ellipse(0, 0, 0.8, 0.8)),
    "heart": heart,
    "zigzag": pieces(*(segment(*start, *end) for start, end in itertools.pairwise(ZIGZAG))),
    "lemniscate": lemniscate,
    "ellipse": ellipse(0, 0, 1.6, 0.5),
}
JUDGED: dict[str, Curve] = {"lissajous": lissajous(3, 2, 0.5), "rose": rose, "waves": waves}
#: run once, after all choices were made
CHECKED: dict[str, Curve] = {"limacon": limacon, "trefoil": trefoil, "stairs": stairs}
GROUPS = {"developed": DEVELOPED, "judged": JUDGED, "checked": CHECKED}


def noisy_points(curve: Curve, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy points of a curve, and the clean ones."""
    rng = np.random.default_rng(seed)
    clean = curve(rng.random(POINTS))
    return clean + noise * rng.standard_normal(clean.shape), clean


def left_by_bayes(curve: Curve, noise: float, seed: int) -> float:
    """Return the part of the noise that the posterior mean leaves."""
    noisy, clean = noisy_points(curve, noise, seed)
    places = curve((np.arange(PLACES) + 0.5) / PLACES)

    def posterior_mean(points: np.ndarray) -> np.ndarray:
        squares = np.square(points[:, None] - places).sum(axis=2)
        return softmax(-squares / (2 * noise**2), axis=1) @ places

    mean = np.concatenate([posterior_mean(block) for block in np.array_split(noisy, BLOCKS)])
    return float(np.square(mean - clean).mean() / np.square(noisy - clean).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", choices=GROUPS, default="developed")
    parser.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")], default=[0, 1])
    asked = parser.parse_args()
    columns = " | ".join(f"σ = {noise:g}: left by Bayes | estimated" for noise in LEVELS)
    print(f"| curve | {columns} |\n|---|{'---:|' * 2 * len(LEVELS)}", flush=True)
    every: list[float] = []
    for name, curve in GROUPS[asked.curves].items():
        cells = [name]
        for noise in LEVELS:
            found = [estimate_noise(noisy_points(curve, noise, seed)[0]) / noise for seed in asked.seeds]
            cells += [f"{left_by_bayes(curve, noise, asked.seeds[0]):.3f}", ", ".join(f"{one:.3f}" for one in found)]
            every += found
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nEstimates: {np.mean(every):.3f} on average, from {min(every):.3f} to {max(every):.3f}.")


if __name__ == "__main__":
    main()
