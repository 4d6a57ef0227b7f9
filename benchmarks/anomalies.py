"""Strange samples found by drkm.AnomalyDetector and by the detectors of scikit-learn: areas under the ROC curve.

Natural anomalies are a class that training has not seen: models are fitted to 60 % of the other samples and score the
rest and that class. Planted ones are rows whose entries are drawn from different samples, column by column, one for
every ten samples: models are fitted to all and score all; LocalOutlierFactor uses its own scores of training samples
for this. Tables are standardised. No setting is chosen by hand; LocalOutlierFactor runs with its default k = 20 and
with k = 10.

    python -m benchmarks.anomalies [--sets digits,wine]
    python -m benchmarks.anomalies --sets unseen      sets that were listed here before they were first scored
    python -m benchmarks.anomalies --times            processor time to fit and score correlated normal samples
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from drkm import AnomalyDetector

#: samples used of large sets, and the share of ordinary ones that models are fitted to
ROWS, SHARE = 700, 0.6
#: ordinary samples per planted one
ORDINARY = 10
FALSE_ALARMS = 0.05
#: sizes of the samples whose fits are timed
TIMED = ((500, 10), (1000, 10), (2000, 10), (3000, 10), (3000, 30))


class Problem(NamedTuple):
    """Samples to fit to, samples to score, and which of these are strange."""

    train: np.ndarray
    test: np.ndarray
    strange: np.ndarray


def pictures(name: str, factor: str) -> tuple[np.ndarray, np.ndarray]:
    """Return grey images of a dataset, averaged from 64×64 down to 16×16 pixels, and one factor."""
    from drkm import datasets as ours

    data = getattr(ours, f"load_{name}")()
    images, factors = data.sample(ROWS, random_state=0)
    grey = images.reshape(ROWS, 64, 64, -1).mean(axis=3) / 255
    pixels = grey.reshape(-1, 16, 4, 16, 4).mean(axis=(2, 4))
    return pixels.reshape(ROWS, -1), factors[:, list(data.factor_names).index(factor)]


def patches() -> tuple[np.ndarray, np.ndarray]:
    """Return grey patches of 6×6 pixels of a photograph, all of one class."""
    grey = datasets.load_sample_image("flower.jpg").mean(axis=2) / 255
    rows, columns = (np.random.RandomState(0).randint(side - 6, size=ROWS) for side in grey.shape)
    cut = [grey[i : i + 6, j : j + 6].ravel() for i, j in zip(rows, columns, strict=True)]
    return np.array(cut), np.zeros(ROWS, dtype=int)


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load_digits(return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(X))[:ROWS]
    return X[rows] / 16, y[rows]


Loader = Callable[[], tuple[np.ndarray, np.ndarray]]
#: loaders with the classes to leave out in turn: the rare or faulty ones if there are any, else all
NATURAL: dict[str, tuple[Loader, tuple[int, ...]]] = {
    "digits": (digits, tuple(range(10))),
    "breast cancer": (lambda: datasets.load_breast_cancer(return_X_y=True), (0,)),
    "wine": (lambda: datasets.load_wine(return_X_y=True), (0, 1, 2)),
    "iris": (lambda: datasets.load_iris(return_X_y=True), (0, 1, 2)),
    "SmallNORB": (lambda: pictures("smallnorb", "category"), tuple(range(5))),
}
PLANTED: dict[str, Loader] = {
    **{name: NATURAL[name][0] for name in ("digits", "breast cancer", "wine", "iris")},
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
}
#: no setting was chosen on these; they were run once
UNSEEN_NATURAL: dict[str, tuple[Loader, tuple[int, ...]]] = {
    "dSprites": (lambda: pictures("dsprites", "shape"), (0, 1, 2)),
    "Cars3D": (lambda: pictures("cars3d", "elevation"), (0, 1, 2, 3)),
}
UNSEEN_PLANTED: dict[str, Loader] = {
    "dSprites": UNSEEN_NATURAL["dSprites"][0],
    "Cars3D": UNSEEN_NATURAL["Cars3D"][0],
    "photograph": patches,
    "linnerud": lambda: (np.hstack(datasets.load_linnerud(return_X_y=True)), np.zeros(20, dtype=int)),
}
IMAGES = ("digits", "SmallNORB", "dSprites", "Cars3D", "photograph")


def left_out(X: np.ndarray, y: np.ndarray, label: int, scaled: bool) -> Problem:
    ordinary = np.random.RandomState(label).permutation(np.flatnonzero(y != label))
    count = int(SHARE * len(ordinary))
    train, test = X[ordinary[:count]], np.vstack([X[ordinary[count:]], X[y == label]])
    strange = np.arange(len(test)) >= len(ordinary) - count
    if scaled:
        train, test = standardised(train, train, test)
    return Problem(train, test, strange)


def planted(X: np.ndarray, seed: int, scaled: bool) -> Problem:
    random = np.random.RandomState(seed)
    X = X[random.permutation(len(X))[: ROWS // 2]]
    sources = random.randint(len(X), size=(len(X) // ORDINARY, X.shape[1]))
    rows = np.vstack([X, np.take_along_axis(X, sources, axis=0)])
    (rows,) = standardised(rows, rows) if scaled else (rows,)
    return Problem(rows, rows, np.arange(len(rows)) >= len(X))


def standardised(by: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    spread = by.std(axis=0)
    return [(rows - by.mean(axis=0)) / np.where(spread > 0, spread, 1.0) for rows in others]


def problems(names: list[str]) -> Iterator[tuple[str, list[Problem]]]:
    unseen = names == ["unseen"]
    natural, mixed = (UNSEEN_NATURAL, UNSEEN_PLANTED) if unseen else (NATURAL, PLANTED)
    for name in (name for name in natural if unseen or name in names):
        load, classes = natural[name]
        X, y = load()
        yield f"{name}, a class left out", [left_out(X, y, label, name not in IMAGES) for label in classes]
    for name in (name for name in mixed if unseen or name in names):
        X, _ = mixed[name]()
        yield f"{name}, planted rows", [planted(X, seed, name not in IMAGES) for seed in range(3)]


def neighbours(problem: Problem, k: int) -> np.ndarray:
    """Return scores by LocalOutlierFactor; if its training samples are to be scored, its own scores of these."""
    k = min(k, len(problem.train) - 1)
    if problem.train is problem.test:
        return LocalOutlierFactor(n_neighbors=k).fit(problem.train).negative_outlier_factor_
    return LocalOutlierFactor(n_neighbors=k, novelty=True).fit(problem.train).score_samples(problem.test)


def areas(problem: Problem) -> dict[str, float]:
    """Return the area under the ROC curve of each detector, and our shares of false alarms and of found anomalies."""
    train, test, strange = problem
    detector = AnomalyDetector(false_alarms=FALSE_ALARMS).fit(train)
    scores = {
        "IsolationForest": IsolationForest(random_state=0).fit(train).score_samples(test),
        "LOF, k = 20": neighbours(problem, 20),
        "LOF, k = 10": neighbours(problem, 10),
        "OneClassSVM": OneClassSVM().fit(train).score_samples(test),
        "drkm": detector.score_samples(test),
    }
    called = detector.predict(test) < 0
    found = {name: float(roc_auc_score(strange, -values)) for name, values in scores.items()}
    return found | {"false alarms": float(called[~strange].mean()), "found": float(called[strange].mean())}


def times() -> None:
    detectors = {
        "drkm": AnomalyDetector,
        "IsolationForest": IsolationForest,
        "LOF": lambda: LocalOutlierFactor(novelty=True),
        "OneClassSVM": OneClassSVM,
    }
    print(f"| samples | features | {' | '.join(f'{name}, s' for name in detectors)} |\n|{'---:|' * 6}")
    for n, d in TIMED:
        rng = np.random.RandomState(0)
        X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
        took = []
        for make in detectors.values():
            began = time.process_time()
            make().fit(X).score_samples(X)
            took.append(f"{time.process_time() - began:.2f}")
        print(f"| {n:,} | {d} | {' | '.join(took)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=[*NATURAL, *PLANTED])
    parser.add_argument("--times", action="store_true")
    asked = parser.parse_args()
    if asked.times:
        times()
        return
    table: list[dict[str, float]] = []
    for name, several in problems(asked.sets):
        found = [areas(problem) for problem in several]
        mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
        if not table:
            print(f"| set | {' | '.join(mean)} |\n|---|{'---:|' * len(mean)}")
        table.append(mean)
        print(f"| {name} | {' | '.join(f'{value:.3f}' for value in mean.values())} |", flush=True)
    means = {key: float(np.mean([row[key] for row in table])) for key in table[0]}
    print(f"| mean | {' | '.join(f'{value:.3f}' for value in means.values())} |")


if __name__ == "__main__":
    main()
