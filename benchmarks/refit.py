"""How far codes of new points can be trusted: encode 40 unseen digits, fit again with them included, compare.

python -m benchmarks refit

The second fit begins at the stacked codes; its layers are aligned with the first by rotations on the training rows.
Errors are relative to the codes after the second fit, beside those of copying the nearest sample's codes: as the mean
of the points' own errors, in which all points count alike, and as one number for the whole matrix of codes, in which
the few points with the largest codes decide. The second bandwidth shrinks by 400/440, because the codes of more samples
are smaller.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.kernels import RBF

TRAIN, NEW, SEEDS = 400, 40, 8
MOST, RATIO = 0.2, 0.5


def mean_of_points(codes: np.ndarray, truth: np.ndarray) -> float:
    return float((np.linalg.norm(codes - truth, axis=1) / np.linalg.norm(truth, axis=1)).mean())


def whole_matrix(codes: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(codes - truth) / np.linalg.norm(truth))


MEASURES = {"mean of points": mean_of_points, "whole matrix": whole_matrix}


def refit(X: np.ndarray, sigma2: tuple[float, float]) -> list[tuple[float, float]]:
    """Return, for each measure, the errors of the encoder and of copying the nearest neighbour."""
    train, new = X[:TRAIN], X[TRAIN : TRAIN + NEW]
    model = ConstrDRKM((10, 5), kernel=[RBF(width) for width in sigma2]).fit(train)
    codes = model.transform(new)
    kernels = [RBF(sigma2[0]), RBF(sigma2[1] * TRAIN / (TRAIN + NEW))]
    again = ConstrDRKM((10, 5), kernel=kernels, init=np.vstack([model.codes_, codes])).fit(np.vstack([train, new]))
    aligned = np.empty_like(again.codes_)
    for block in model.layer_slices_:
        left, _, right = np.linalg.svd(again.codes_[:TRAIN, block].T @ model.codes_[:, block])
        aligned[:, block] = again.codes_[:, block] @ (left @ right)
    shrink = np.sqrt(TRAIN / (TRAIN + NEW))
    nearest = ((new[:, None] - train) ** 2).sum(axis=2).argmin(axis=1)
    truth = aligned[TRAIN:]
    copied = model.codes_[nearest]
    return [(error(shrink * codes, truth), error(shrink * copied, truth)) for error in MEASURES.values()]


def main() -> None:
    torch.set_num_threads(1)
    data = load_digits().data / 16
    print(f"| σ² | error | median | median of copying | ≤ {MOST} | ≤ half of copying | both | each draw |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    for sigma2 in ((2.0, 0.05), (2.0, 0.01), (5.0, 0.02)):
        draws = [np.random.RandomState(seed).permutation(len(data)) for seed in range(SEEDS)]
        found = np.array([refit(data[order], sigma2) for order in draws])
        for k, measure in enumerate(MEASURES):
            print(row(sigma2, measure, found[:, k]), flush=True)


def row(sigma2: tuple[float, float], measure: str, errors: np.ndarray) -> str:
    small, half = errors[:, 0] <= MOST, errors[:, 0] <= RATIO * errors[:, 1]
    each = ", ".join(f"{error:.2f}/{copied:.2f}" for error, copied in errors)
    counts = " | ".join(f"{count} of {SEEDS}" for count in (small.sum(), half.sum(), (small & half).sum()))
    medians = np.median(errors, axis=0)
    return f"| {sigma2[0]:g}, {sigma2[1]:g} | {measure} | {medians[0]:.2f} | {medians[1]:.2f} | {counts} | {each} |"


if __name__ == "__main__":
    main()
