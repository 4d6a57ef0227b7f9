"""How far codes of new points can be trusted: encode 40 unseen digits, fit again with them included, compare.

python -m benchmarks refit

The second fit begins at the stacked codes; its layers are aligned with the first by rotations on the training rows.
Errors are relative to the norm of the codes after the second fit, beside those of copying the nearest sample's codes.
The second bandwidth shrinks by 400/440, because the codes of more samples are smaller.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.kernels import RBF

TRAIN, NEW, SEEDS = 400, 40, 8


def refit(X: np.ndarray, sigma2: tuple[float, float]) -> tuple[float, float]:
    """Return the errors of the encoder and of copying the nearest neighbour."""
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
    return tuple(np.linalg.norm(truth - shrink * z) / np.linalg.norm(truth) for z in (codes, model.codes_[nearest]))


def main() -> None:
    torch.set_num_threads(1)
    data = load_digits().data / 16
    print("| σ² | median error | median of copying | ≤ 0.2 | ≤ half of copying | both | error/copying of each draw |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for sigma2 in ((2.0, 0.05), (2.0, 0.01), (5.0, 0.02)):
        draws = [np.random.RandomState(seed).permutation(len(data)) for seed in range(SEEDS)]
        errors = np.array([refit(data[order], sigma2) for order in draws])
        small, half = errors[:, 0] <= 0.2, errors[:, 0] <= 0.5 * errors[:, 1]
        each = ", ".join(f"{error:.2f}/{copied:.2f}" for error, copied in errors)
        counts = " | ".join(f"{count} of {SEEDS}" for count in (small.sum(), half.sum(), (small & half).sum()))
        medians = np.median(errors, axis=0)
        print(f"| {sigma2[0]:g}, {sigma2[1]:g} | {medians[0]:.2f} | {medians[1]:.2f} | {counts} | {each} |", flush=True)


if __name__ == "__main__":
    main()
