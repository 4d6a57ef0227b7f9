"""Which settings of the second layer give codes that are recovered on another draw of samples.

python -m benchmarks stability
python -m benchmarks stability --draws 10

Two models are fitted to 400 digits each, no digit in both, and encode the same 600 others. "Recovered" is the mean
squared canonical correlation between their codes of these: 1 if the codes of a layer span the same functions.
"Effective" is the effective sample size of a layer, as in `summary()`. "Accuracy" is that of a logistic regression on
the codes of the first model. Means over the draws.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM
from drkm.kernels import RBF

TRAIN, TEST = 400, 600
SIZES = (10, 5)
#: factors of the second bandwidth, each with η_2
SETTINGS = [(1, 1), (1, 3), (1, 10), (1, 30), (4, 1), (20, 1), (0.2, 1), (0.2, 10)]


def recovered(A: np.ndarray, B: np.ndarray) -> float:
    """Return the mean squared canonical correlation of two sets of codes of the same points."""
    left, right = (np.linalg.qr(codes - codes.mean(axis=0))[0] for codes in (A, B))
    return float(((left.T @ right) ** 2).sum() / A.shape[1])


def measure(make: ConstrDRKM, X: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return effective sample sizes of all layers, the recovery of each layer and of all codes, and the accuracy."""
    test = slice(2 * TRAIN, 2 * TRAIN + TEST)
    model = make.fit(X[:TRAIN])
    codes, layers, found = model.codes_, model.layer_slices_, model.transform(X[test])
    supports = model.fitted_.supports
    other = make.fit(X[TRAIN : 2 * TRAIN]).transform(X[test])
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(codes, labels[:TRAIN])
    return [
        *supports,
        *(recovered(found[:, layer], other[:, layer]) for layer in [*layers, slice(None)]),
        probe.score(found, labels[test]),
    ]


def row(name: str, make: ConstrDRKM, draws: int) -> str:
    digits = load_digits()
    measured = []
    for seed in range(draws):
        order = np.random.RandomState(seed).permutation(len(digits.data))
        measured.append(measure(make, digits.data[order] / 16, digits.target[order]))
    values = np.mean(measured, axis=0).tolist()
    if len(values) == 4:  # one layer
        values = [values[0], None, values[1], None, values[2], values[3]]
    formats = (".0f", ".0f", ".2f", ".2f", ".2f", ".1%")
    return (
        f"| {name} | "
        + " | ".join("–" if v is None else f"{v:{f}}" for v, f in zip(values, formats, strict=True))
        + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    draws = parser.parse_args().draws
    torch.set_num_threads(1)
    print("| σ_2², η_2 | effective: layer 1 | layer 2 | recovered: layer 1 | layer 2 | all | accuracy |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    print(row(f"kernel PCA, {sum(SIZES)} components", ConstrDRKM(sum(SIZES)), draws), flush=True)
    print(row("scale, auto (the default)", ConstrDRKM(SIZES), draws), flush=True)
    for factor, eta in SETTINGS:
        kernels = [RBF(), RBF(factor * 2 * SIZES[0] / TRAIN)]
        name = f"{'scale' if factor == 1 else f'{factor:g} scale'}, {eta:g}"
        print(row(name, ConstrDRKM(SIZES, kernel=kernels, eta=(1.0, float(eta))), draws), flush=True)


if __name__ == "__main__":
    main()
