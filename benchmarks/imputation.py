"""Gaps filled by drkm.Imputer and by the imputers of scikit-learn.

Entries of standardised tables are removed at random; the number is the mean squared error on them, averaged over
seeds. The k of nearest neighbours is the best of several, chosen using the true values. The sets of the second group
were listed before any of them was tried with this imputer.

    python -m benchmarks.imputation [--seeds 0,1,2] [--sets wine,iris]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from drkm import Imputer

SHARES = (0.1, 0.3)
NEIGHBOURS = (1, 2, 3, 5, 8, 12, 20, 30)
ROWS = 400


def some_rows(X: np.ndarray) -> np.ndarray:
    return X[np.random.RandomState(0).permutation(len(X))[:ROWS]]


def patches() -> np.ndarray:
    """Return patches of 8×8 pixels of a photograph, in grey."""
    image = datasets.load_sample_image("china.jpg").mean(axis=2)
    height, width = (8 * (side // 8) for side in image.shape)
    blocks = image[:height, :width].reshape(height // 8, 8, width // 8, 8).swapaxes(1, 2)
    return some_rows(blocks.reshape(-1, 64))


def smallnorb() -> np.ndarray:
    """Return images of toys, averaged from 64×64 down to 8×8 pixels."""
    from drkm.datasets import load_smallnorb

    images, _ = load_smallnorb().sample(ROWS, random_state=0)
    return images.reshape(-1, 8, 8, 8, 8).mean(axis=(2, 4)).reshape(len(images), 64)


def linnerud() -> np.ndarray:
    found = datasets.load_linnerud()
    return np.hstack([found.data, found.target])


SEEN: dict[str, Callable[[], np.ndarray]] = {
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "wine": lambda: datasets.load_wine().data,
    "diabetes": lambda: datasets.load_diabetes().data,
    "digits": lambda: some_rows(datasets.load_digits().data),
}
#: listed before they were tried
UNSEEN: dict[str, Callable[[], np.ndarray]] = {
    "iris": lambda: datasets.load_iris().data,
    "linnerud": linnerud,
    "photograph": patches,
    "SmallNORB": smallnorb,
}


def standardised(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def errors(truth: np.ndarray, share: float, seed: int) -> dict[str, float]:
    """Return the mean squared error of each imputer on entries removed at random."""
    gone = np.random.default_rng(seed).random(truth.shape) < share
    X = np.where(gone, np.nan, truth)

    def error(imputer: object) -> float:
        filled = imputer.fit_transform(X)  # type: ignore[attr-defined]
        return float(np.mean((filled - truth)[gone] ** 2))

    neighbours = [KNNImputer(n_neighbors=k, keep_empty_features=True) for k in NEIGHBOURS if k < len(X)]
    iterated = [IterativeImputer(max_iter=rounds, keep_empty_features=True, random_state=0) for rounds in (10, 100)]
    return {
        **{f"k = {one.n_neighbors}": error(one) for one in neighbours},
        **{f"iterative, {one.max_iter}": error(one) for one in iterated},
        "drkm": error(Imputer(keep_empty_features=True)),
    }


def row(name: str, X: np.ndarray, share: float, seeds: list[int]) -> float:
    """Print the errors of one set and share, and return ours relative to the best rival's."""
    found = [errors(standardised(X), share, seed) for seed in seeds]
    mean = {method: float(np.mean([one[method] for one in found])) for method in found[0]}
    nearest = min((method for method in mean if method.startswith("k")), key=mean.__getitem__)
    rivals = [mean[nearest], mean["iterative, 10"], mean["iterative, 100"]]
    ratio = mean["drkm"] / min(rivals)
    cells = " | ".join(f"{value:.4f}" for value in (*rivals, mean["drkm"]))
    print(f"| {name} | {share:.0%} | {nearest} | {cells} | {ratio:.3f} |", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=[*SEEN, *UNSEEN])
    asked = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| set | missing | best k | its error | iterative, 10 rounds | to convergence | drkm | of the best rival |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    ratios = [row(name, (SEEN | UNSEEN)[name](), share, asked.seeds) for name in asked.sets for share in SHARES]
    within = f"{sum(ratio <= 1.05 for ratio in ratios)} of {len(ratios)} at most 1.05 times the best rival"
    print(f"\n{within}, {max(ratios):.3f} at most, {np.mean(ratios):.3f} in the mean.")


if __name__ == "__main__":
    main()
