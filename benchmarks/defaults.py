"""The quality of the defaults: layer 1 of ConstrDRKM((10, 5)), compared with kernel PCA with ten components.

python -m benchmarks.defaults                      # five sets; DRKM_DATA names the folder of the images
python -m benchmarks.defaults --sets digits,wine --sizes 100 --draws 5
python -m benchmarks.defaults --model centred --sizes 400      # other choices, against the same kernel PCA

Per set and number of samples n, means over the draws:

effective    effective sample size of layer 1, over that of kernel PCA (target: at least .85)
recovered    mean squared canonical correlation between the codes of unseen samples by two models, fitted to different
             draws of n samples, over that of kernel PCA (at least .93)
accuracy     of a linear classifier on the codes of unseen samples, mean over the factors, minus kernel PCA's
             (at least -.02)
IRS          above chance, minus kernel PCA's (at least -.03)
time         of a fit, over that with the paper's weights, eta=1 (at most 1.5)

Values that miss their target are marked with *. Two draws of 1,000 digits share samples, as there are only 1,797.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.stability import recovered
from drkm import ConstrDRKM, datasets
from drkm.metrics import chance, irs

SIZES = (10, 5)
#: maximum number of unseen samples, and minimum for small sets
MOST_TEST, LEAST_TEST = 1500, 300
#: (name, format, whether the value is a ratio, and its target)
COLUMNS = (("effective", ".2f", 0.85), ("recovered", ".2f", 0.93), ("accuracy", "+.3f", -0.02), ("IRS", "+.3f", -0.03))
SLOWEST = 1.5
CHANCE_REPEATS = 5
#: possible defaults as functions of the number of samples: "scale" is a bandwidth of 2·s_1/n in layer 2
MODELS: dict[str, Callable[[int], dict[str, Any]]] = {
    "default": lambda n: {},
    "centred": lambda n: {"center": True},
    "wide": lambda n: {"sigma2": ("median", 4 * 2 * SIZES[0] / n)},
}

Draw = tuple[np.ndarray, np.ndarray]
Source = Callable[[int, int], Draw]


def table(load: Callable[..., Any], scale: bool) -> Source:
    """Return a function that draws rows, with their labels, from a table of scikit-learn."""

    def draw(count: int, seed: int) -> Draw:
        X, y = load(return_X_y=True)
        order = np.random.RandomState(seed).permutation(len(X))[:count]
        return (StandardScaler().fit_transform(X) if scale else X / 16)[order], y[order, None]

    return draw


def images(load: Callable[[], Any]) -> Source:
    """Return a function that draws images, with their factors."""

    def draw(count: int, seed: int) -> Draw:
        found, factors = load().sample(count, random_state=seed)
        return found.reshape(count, -1) / 255.0, factors

    return draw


#: set → function that draws from it, and number of its samples
SOURCES: dict[str, tuple[Source, int | None]] = {
    "digits": (table(load_digits, scale=False), 1797),
    "dSprites": (images(datasets.load_dsprites), None),
    "Cars3D": (images(datasets.load_cars3d), None),
    "SmallNORB": (images(datasets.load_smallnorb), None),
    "noisy dSprites": (images(datasets.load_noisy_dsprites), None),
    "breast cancer": (table(load_breast_cancer, scale=True), 569),
    "wine": (table(load_wine, scale=True), 178),
}
FIVE = tuple(SOURCES)[:5]


@dataclass(frozen=True)
class Measures:
    """The measures by which the first layer of a model is judged."""

    effective: float
    recovered: float
    accuracy: float
    irs: float
    eta: float


def parts_of(name: str, n: int, seed: int) -> tuple[Draw, Draw, Draw]:
    """Return n samples, n others, and unseen ones; the first two share samples if there are too few."""
    draw, there = SOURCES[name]
    test = MOST_TEST if there is None else min(MOST_TEST, max(LEAST_TEST, there - 2 * n), there - n)
    total = 2 * n + test if there is None else min(there, 2 * n + test)
    X, y = draw(total, seed)
    return (X[test : test + n], y[test : test + n]), (X[-n:], y[-n:]), (X[:test], y[:test])


def measure(make: ConstrDRKM, parts: tuple[Draw, Draw, Draw]) -> Measures:
    """Return the measures of one model on one draw."""
    (X, y), (other, _), (unseen, factors) = parts
    model = make.fit(X)
    first, effective = model.layer_slices_[0], model.fitted_.supports[0]
    codes, found, eta = model.codes_[:, first].copy(), model.transform(unseen)[:, first], model.fitted_.eta[-1]
    again = make.fit(other).transform(unseen)[:, first]
    named = [accuracy(codes, y[:, k], found, factors[:, k]) for k in range(y.shape[1]) if len(np.unique(y[:, k])) > 1]
    above = float(irs(found, factors)) - float(chance(irs, found, factors, repeats=CHANCE_REPEATS))
    return Measures(effective, recovered(found, again), float(np.mean(named)), above, eta)


def accuracy(codes: np.ndarray, labels: np.ndarray, unseen: np.ndarray, truth: np.ndarray) -> float:
    """Return the accuracy of a linear classifier on the codes of unseen samples."""
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return float(probe.fit(codes, labels).score(unseen, truth))


def seconds(make: ConstrDRKM, X: np.ndarray) -> float:
    """Return the shorter time of two fits."""
    spent = []
    for _ in range(2):
        clock = time.perf_counter()
        make.fit(X)
        spent.append(time.perf_counter() - clock)
    return min(spent)


def row(name: str, n: int, draws: int, model: str) -> str:
    """Return one row of the table."""
    chosen = ConstrDRKM(SIZES, **MODELS[model](n))
    ours, theirs, times = [], [], []
    for seed in range(draws):
        parts = parts_of(name, n, seed)
        ours.append(astuple(measure(chosen, parts)))
        theirs.append(astuple(measure(ConstrDRKM(SIZES[0]), parts)))
        times.append(seconds(chosen, parts[0][0]) / seconds(ConstrDRKM(SIZES, eta=1.0), parts[0][0]))
    mine, pca = np.mean(ours, axis=0), np.mean(theirs, axis=0)
    values = [mine[0] / pca[0], mine[1] / pca[1], mine[2] - pca[2], mine[3] - pca[3]]
    cells = [
        f"{value:{form}}{'' if value >= target else '*'}"
        for value, (_, form, target) in zip(values, COLUMNS, strict=True)
    ]
    slow = float(np.mean(times))
    cells.append(f"{slow:.2f}{'' if slow <= SLOWEST else '*'}")
    return f"| {name} | {n} | {mine[4]:.3g} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(FIVE), help=f"of {', '.join(SOURCES)}")
    parser.add_argument("--sizes", default="100,400,1000", help="numbers of samples")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--model", choices=MODELS, default="default")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| set | n | η_2 | " + " | ".join(name for name, _, _ in COLUMNS) + " | time |")
    print("|---|---:|---:|" + "---:|" * (len(COLUMNS) + 1))
    for name in asked.sets.split(","):
        for n in map(int, asked.sizes.split(",")):
            print(row(name, n, asked.draws, asked.model), flush=True)


if __name__ == "__main__":
    main()
