"""Pitfalls of the metrics: the numbers of docs/metrics.md.

Run from the repository root:  python -m benchmarks.metrics_pitfalls

Inputs are the golden cases of the tests (synthetic codes) and normal noise from a fixed seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import SupportsFloat

import numpy as np

GOLDEN = Path(__file__).parents[1] / "tests" / "metrics" / "golden"
DSPRITES, CARS3D = (3, 6, 40, 32, 32), (4, 24, 183)


def case(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return codes, factors, train and test rows of a golden case."""
    with np.load(next(GOLDEN.glob(f"{name}*.npz"))) as data:
        return data["codes"].astype(float), data["factors"], data["train_idx"], data["test_idx"]


def noise(n: int, sizes: tuple[int, ...], m: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return normal codes that are independent of uniform factors."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)), np.stack([rng.integers(size, size=n) for size in sizes], axis=1)


def mean_over_seeds(score: Callable[[np.ndarray, np.ndarray], float], n: int, sizes: tuple[int, ...]) -> float:
    return float(np.mean([score(*noise(n, sizes, seed=seed)) for seed in range(5)]))


def standardised(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(axis=0)) / z.std(axis=0)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    from drkm import metrics

    def show(text: str, *values: SupportsFloat) -> None:
        print(f"{text:86}" + " ".join(f"{float(value):.3f}" for value in values))

    z6, y6, train, test = case("p06")
    z7, y7, _, _ = case("p07")
    z5, y5, train5, _ = case("p05")
    z1, y1, _, _ = case("p01")

    print("IRS")
    show(
        "  p07 (Cars3D-like): factors in 20 bins, factors as they are",
        metrics.irs(z7, y7),
        metrics.irs(z7, y7, bins=None),
    )
    for n in (50, 500, 4000):
        show(
            f"  noise, dSprites factors, n={n}",
            mean_over_seeds(lambda z, y: float(metrics.irs(z, y)), n, DSPRITES),
        )
    show(
        "  noise, Cars3D factors as they are, n=100",
        mean_over_seeds(lambda z, y: float(metrics.irs(z, y, bins=None)), 100, CARS3D),
    )
    for power in (1, 3, 5):

        def heavy(z: np.ndarray, y: np.ndarray, power: int = power) -> float:
            return float(metrics.irs(z**power, y))

        show(
            f"  noise to the power {power} (heavier tails), dSprites factors, n=4000",
            mean_over_seeds(heavy, 4000, DSPRITES),
        )
    show("  p06: as given, standardised", metrics.irs(z6, y6), metrics.irs(z6, y6, standardize=True))
    show(
        "  p06: its chance level, as given and standardised",
        metrics.chance("irs", z6, y6),
        metrics.chance("irs", z6, y6, standardize=True),
    )

    print("MIG and modularity")
    for n in (250, 1000, 4000):
        show(
            f"  p06, first {n} rows: MIG with 20 bins, with 400",
            metrics.mig(z6[:n], y6[:n]),
            metrics.mig(z6[:n], y6[:n], bins=400),
        )
    for n in (500, 4000):
        show(
            f"  noise, dSprites factors, n={n}: modularity",
            mean_over_seeds(lambda z, y: float(metrics.modularity(z, y)), n, DSPRITES),
        )
    alive = np.ptp(z5, axis=0) > 0
    show(
        "  p05 modularity with its three constant codes, without them",
        metrics.modularity(z5[train5], y5[train5]),
        metrics.modularity(z5[train5][:, alive], y5[train5]),
    )

    print("SAP, discrete")
    unit = standardised(z6)
    for scale in (1 / 63, 0.1, 1.0, 10.0):
        show(
            f"  p06 standardised × {scale:.3f}",
            metrics.sap(scale * unit[train], y6[train], scale * unit[test], y6[test]),
        )
    show(
        "  any of them with standardize=True",
        metrics.sap(z6[train], y6[train], z6[test], y6[test], standardize=True),
    )

    print("FactorVAE and BetaVAE")
    small = standardised(z6) / np.sqrt(len(z6))
    show(
        "  p06 with orthonormal-like scale (entries n^-1/2): FactorVAE, BetaVAE",
        metrics.factor_vae(small, y6),
        metrics.beta_vae(small, y6),
    )
    show(
        "  the same, standardize=True",
        metrics.factor_vae(small, y6, standardize=True),
        metrics.beta_vae(small, y6, standardize=True),
    )
    for scale in (1e-2, 1e-3, 1e-4):
        show(f"  p01 (codes are the factors) × {scale}: BetaVAE", metrics.beta_vae(scale * z1, y1))
    z2, y2, _, _ = case("p02")
    show(
        "  p02 (factors rotated into each other): FactorVAE, BetaVAE, MIG",
        metrics.factor_vae(z2, y2),
        metrics.beta_vae(z2, y2),
        metrics.mig(z2, y2),
    )

    print("noise, dSprites factors, n=2000: score of codes that know nothing")
    print(
        metrics.evaluate(
            *noise(2000, DSPRITES),
            metrics=["irs", "mig", "sap", "dci", "factor_vae", "beta_vae", "modularity", "explicitness"],
            repeats=3,
        )
    )


if __name__ == "__main__":
    main()
