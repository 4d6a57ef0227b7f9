"""The accuracy of codes of new points: encode 40 unseen digits, fit again with them included, compare.

python -m benchmarks refit
python -m benchmarks refit --no-warmup     other optima: no continuation in the first fit
python -m benchmarks refit --same-width    the second bandwidth stays as it is
python -m benchmarks refit --eta 3         the second layer has a third of the weight
python -m benchmarks refit --alone         instead of the encoder: fit again with each new digit alone
python -m benchmarks refit --draws 24      more draws

The second fit begins at the stacked codes; its layers are aligned with the first by rotations on the training rows.
Errors, of the encoder and of copying the nearest sample's codes, are relative to the codes after the second fit: the
mean of the errors of single points, in which all points count equally, and one number for the whole matrix of codes, in
which the few points with the largest codes dominate. The second bandwidth shrinks by 400/440, because the codes of more
samples are smaller. A second table describes the optima of the first fit. With --alone each digit gets its codes from
a fit to it and the 400: the best that a rule for one new point at a time can achieve.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.kernels import RBF
from drkm.solvers import LBFGS

TRAIN, NEW = 400, 40
MOST, RATIO = 0.2, 0.5


def mean_of_points(codes: np.ndarray, truth: np.ndarray) -> float:
    return float((np.linalg.norm(codes - truth, axis=1) / np.linalg.norm(truth, axis=1)).mean())


def whole_matrix(codes: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(codes - truth) / np.linalg.norm(truth))


MEASURES = {"mean of points": mean_of_points, "whole matrix": whole_matrix}


class Draw(NamedTuple):
    """One draw: for each measure the errors of the encoder and of copying the nearest neighbour; the first optimum."""

    errors: list[tuple[float, float]]
    optimum: tuple[float, ...]


def refit(X: np.ndarray, sigma2: tuple[float, float], asked: argparse.Namespace) -> Draw:
    """Encode, fit again, compare."""
    train, new = X[:TRAIN], X[TRAIN : TRAIN + NEW]
    eta = (1.0, asked.eta)
    kernels = [RBF(width) for width in sigma2]
    model = ConstrDRKM((10, 5), kernel=kernels, eta=eta, solver=LBFGS(warmup=not asked.no_warmup)).fit(train)
    encoding = model.encode(new)
    codes, ambiguous = np.asarray(encoding.codes), float(np.mean(np.asarray(encoding.ambiguous)))

    def codes_with(rows: slice) -> np.ndarray:
        """Return the codes of new points after a fit with them, aligned with the first fit, scaled to 400 samples."""
        more = new[rows]
        shrink = TRAIN / (TRAIN + len(more))
        again = ConstrDRKM(
            (10, 5),
            kernel=[RBF(sigma2[0]), RBF(sigma2[1] if asked.same_width else sigma2[1] * shrink)],
            eta=eta,
            init=np.vstack([model.codes_, codes[rows]]),
        ).fit(np.vstack([train, more]))
        aligned = np.empty((len(more), again.codes_.shape[1]))
        for block in model.layer_slices_:
            left, _, right = np.linalg.svd(again.codes_[:TRAIN, block].T @ model.codes_[:, block])
            aligned[:, block] = again.codes_[TRAIN:, block] @ (left @ right)
        return aligned / np.sqrt(shrink)

    truth = codes_with(slice(0, NEW))
    nearest = ((new[:, None] - train) ** 2).sum(axis=2).argmin(axis=1)
    found = np.vstack([codes_with(slice(i, i + 1)) for i in range(NEW)]) if asked.alone else codes
    errors = [(error(found, truth), error(model.codes_[nearest], truth)) for error in MEASURES.values()]
    return Draw(errors, (model.objective_, concentration(model), model.score(new), ambiguous))


def concentration(model: ConstrDRKM) -> float:
    """Return the share of ‖H_1‖² in the tenth of the samples with the largest codes."""
    sizes = np.sort((model.codes_[:, model.layer_slices_[0]] ** 2).sum(axis=1))
    return float(sizes[-TRAIN // 10 :].sum() / sizes.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--no-warmup", action="store_true")
    parser.add_argument("--same-width", action="store_true")
    parser.add_argument("--eta", type=float, default=1.0)
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    data = load_digits().data / 16
    orders = [np.random.RandomState(seed).permutation(len(data)) for seed in range(asked.draws)]
    print(f"| σ² | error | median | median of copying | ≤ {MOST} | ≤ half of copying | both | each draw |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    optima = []
    for sigma2 in ((2.0, 0.05), (2.0, 0.01), (5.0, 0.02)):
        draws = [refit(data[order], sigma2, asked) for order in orders]
        for k, measure in enumerate(MEASURES):
            print(row(sigma2, measure, np.array([draw.errors[k] for draw in draws])), flush=True)
        means = np.mean([draw.optimum for draw in draws], axis=0)
        optima.append("| {:g}, {:g} | {:.1f} | {:.0%} | {:.3f} | {:.0%} |".format(*sigma2, *means))
    print("\n| σ² | J | layer 1 on a tenth of the samples | score of the new points | ambiguous |")
    print("|---|---:|---:|---:|---:|", *optima, sep="\n")


def row(sigma2: tuple[float, float], measure: str, errors: np.ndarray) -> str:
    small, half = errors[:, 0] <= MOST, errors[:, 0] <= RATIO * errors[:, 1]
    each = ", ".join(f"{error:.2f}/{copied:.2f}" for error, copied in errors)
    counts = " | ".join(f"{count} of {len(errors)}" for count in (small.sum(), half.sum(), (small & half).sum()))
    medians = np.median(errors, axis=0)
    return f"| {sigma2[0]:g}, {sigma2[1]:g} | {measure} | {medians[0]:.2f} | {medians[1]:.2f} | {counts} | {each} |"


if __name__ == "__main__":
    main()
