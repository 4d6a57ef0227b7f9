"""Speed of drkm.metrics against plain implementations, and agreement of DCI's fast learner with the reference.

Run from the repository root:  python -m benchmarks.metrics          (some minutes: the rival's DCI)
                               python -m benchmarks.metrics --quick  (without it)

The rival does what the reference does, as loops over scikit-learn and numpy: one mutual_info_score per pair, one
LinearSVC per pair, one GradientBoostingClassifier per factor, one batch per vote. Within these limits it is fast:
arrays in memory, rows grouped by factor value beforehand, numpy's fast generator. Both have one thread and run
alternately; times are the best of several runs, except for the rival's DCI, which runs once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (3, 6, 40, 32, 32)
TRAIN, TEST = 4000, 2000
GOLDEN = Path(__file__).parents[1] / "tests" / "metrics" / "golden"


def make_codes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten codes of dSprites-like factors: five noisy copies, three mixtures, two that hardly vary."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(size, size=n) for size in SIZES], axis=1)
    u = 3.4 * (factors / (np.array(SIZES) - 1) - 0.5)
    copies = u + 0.1 * rng.normal(size=u.shape)
    copies[:, 0] += 0.3 * u[:, 1]
    mixtures = 0.6 * np.tanh(u[:, 2:] @ rng.normal(size=(3, 3))) + 0.2 * rng.normal(size=(n, 3))
    return np.concatenate([copies, mixtures, 0.03 * rng.normal(size=(n, 2))], axis=1), factors


def plain_binned(column: np.ndarray, bins: int = 20) -> np.ndarray:
    return np.digitize(column, np.histogram(column, bins)[1][:-1])


def plain_mig(z: np.ndarray, y: np.ndarray) -> float:
    from sklearn.metrics import mutual_info_score

    binned = np.stack([plain_binned(z[:, code]) for code in range(z.shape[1])], axis=1)
    information = np.empty((z.shape[1], y.shape[1]))
    for code in range(z.shape[1]):
        for j in range(y.shape[1]):
            information[code, j] = mutual_info_score(y[:, j], binned[:, code])
    entropy = np.array([mutual_info_score(y[:, j], y[:, j]) for j in range(y.shape[1])])
    ordered = np.sort(information, axis=0)
    return float(np.mean((ordered[-1] - ordered[-2]) / entropy))


def plain_irs(z: np.ndarray, y: np.ndarray) -> float:
    binned = np.stack([plain_binned(y[:, j].astype(float)) for j in range(y.shape[1])], axis=1)
    largest = np.abs(z - z.mean(axis=0)).max(axis=0)
    matrix = np.empty((z.shape[1], y.shape[1]))
    for j in range(y.shape[1]):
        deviations = []
        for value in np.unique(binned[:, j]):
            group = z[binned[:, j] == value]
            deviations.append(np.percentile(np.abs(group - group.mean(axis=0)), 99, axis=0))
        matrix[:, j] = 1 - np.mean(deviations, axis=0) / largest
    return float(np.average(matrix.max(axis=1), weights=largest))


def plain_sap(z: np.ndarray, y: np.ndarray, test_z: np.ndarray, test_y: np.ndarray) -> float:
    from sklearn.svm import LinearSVC

    matrix = np.empty((z.shape[1], y.shape[1]))
    for code in range(z.shape[1]):
        for j in range(y.shape[1]):
            model = LinearSVC(C=0.01, class_weight="balanced").fit(z[:, [code]], y[:, j])
            matrix[code, j] = np.mean(model.predict(test_z[:, [code]]) == test_y[:, j])
    ordered = np.sort(matrix, axis=0)
    return float(np.mean(ordered[-1] - ordered[-2]))


def plain_dci(z: np.ndarray, y: np.ndarray, test_z: np.ndarray, test_y: np.ndarray) -> float:
    from scipy.stats import entropy
    from sklearn.ensemble import GradientBoostingClassifier

    importances = np.empty((z.shape[1], y.shape[1]))
    for j in range(y.shape[1]):
        model = GradientBoostingClassifier(random_state=0).fit(z, y[:, j])
        importances[:, j] = model.feature_importances_
        model.predict(test_z)
        model.predict(z)
    per_code = 1 - entropy(importances.T + 1e-11, base=y.shape[1])
    return float(np.sum(per_code * importances.sum(axis=1) / importances.sum()))


def plain_factor_vae(z: np.ndarray, y: np.ndarray, n_train: int = 10000, n_eval: int = 5000) -> float:
    rng = np.random.default_rng(0)
    variance = z.var(axis=0, ddof=1)
    active = np.flatnonzero(np.sqrt(variance) >= 0.05)
    z, variance = np.ascontiguousarray(z[:, active]), variance[active]
    rows = [{v: np.flatnonzero(y[:, j] == v) for v in np.unique(y[:, j])} for j in range(y.shape[1])]

    def vote() -> tuple[int, int]:
        j = int(rng.integers(y.shape[1]))
        group = rows[j][y[rng.integers(len(y)), j]]
        batch = z[group[rng.integers(len(group), size=64)]]
        return j, int(np.argmin(batch.var(axis=0, ddof=1) / variance))

    votes = np.zeros((y.shape[1], active.size))
    for _ in range(n_train):
        votes[vote()] += 1
    stands_for = votes.argmax(axis=0)
    right = 0
    for _ in range(n_eval):
        j, code = vote()
        right += stands_for[code] == j
    return right / n_eval


def plain_beta_vae(z: np.ndarray, y: np.ndarray, n_train: int = 10000, n_eval: int = 5000) -> float:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = [{v: np.flatnonzero(y[:, j] == v) for v in np.unique(y[:, j])} for j in range(y.shape[1])]

    def samples(count: int) -> tuple[np.ndarray, np.ndarray]:
        x, label = np.empty((count, z.shape[1])), np.empty(count, dtype=int)
        for i in range(count):
            j = int(rng.integers(y.shape[1]))
            first = rng.integers(len(y), size=64)
            partner = [rows[j][v][int(u * len(rows[j][v]))] for v, u in zip(y[first, j], rng.random(64), strict=True)]
            x[i], label[i] = np.abs(z[first] - z[partner]).mean(axis=0), j
        return x, label

    model = LogisticRegression().fit(*samples(n_train))
    return float(model.score(*samples(n_eval)))


def plain_modularity(z: np.ndarray, y: np.ndarray) -> float:
    from sklearn.metrics import mutual_info_score

    scores = []
    for code in range(z.shape[1]):
        binned = plain_binned(z[:, code])
        squared = np.array([mutual_info_score(y[:, j], binned) ** 2 for j in range(y.shape[1])])
        scores.append(1 - (squared.sum() - squared.max()) / ((y.shape[1] - 1) * squared.max()))
    return float(np.mean(scores))


def race(ours: Callable[[], Any], plain: Callable[[], float], laps: int, plain_laps: int) -> tuple[float, ...]:
    """Return the shortest time of each, run alternately so that a busy machine slows both, and the two values."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for lap in range(laps):
        for lane, function in enumerate((ours, plain)):
            if lane == 0 or lap < plain_laps:
                start = time.perf_counter()
                value = float(function())
                seconds[lane].append(time.perf_counter() - start)
                if lane == 0:
                    our_value = value
                else:
                    plain_value = value
    return min(seconds[0]), min(seconds[1]), our_value, plain_value


def speed(quick: bool) -> None:
    """Print the table of times."""
    from drkm import metrics

    codes, factors = make_codes(TRAIN + TEST)
    z, y, test_z, test_y = codes[:TRAIN], factors[:TRAIN], codes[TRAIN:], factors[TRAIN:]
    train, both = (z, y), (z, y, test_z, test_y)
    contests = [
        ("IRS", lambda: plain_irs(*train), lambda: metrics.irs(*train), 30, 30, "1"),
        ("MIG", lambda: plain_mig(*train), lambda: metrics.mig(*train), 10, 10, "10"),
        ("modularity", lambda: plain_modularity(*train), lambda: metrics.modularity(*train), 10, 10, ""),
        ("SAP (discrete)", lambda: plain_sap(*both), lambda: metrics.sap(*both), 5, 5, "3"),
        ("FactorVAE", lambda: plain_factor_vae(*train), lambda: metrics.factor_vae(*train), 5, 5, "10"),
        ("BetaVAE", lambda: plain_beta_vae(*train), lambda: metrics.beta_vae(*train), 3, 3, ""),
        ("DCI (fast)", lambda: plain_dci(*both), lambda: metrics.dci(*both), 3, 1, "20"),
    ]
    print(f"{TRAIN} train / {TEST} test rows, 10 codes, factors {'×'.join(map(str, SIZES))}, one thread\n")
    print("| metric | plain, s | drkm, s | times faster | asked for | plain value | drkm value |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, plain, ours, laps, plain_laps, target in contests:
        if quick and name.startswith("DCI"):
            continue
        our_time, plain_time, our_value, plain_value = race(ours, plain, laps, plain_laps)
        print(
            f"| {name} | {plain_time:.4f} | {our_time:.4f} | {plain_time / our_time:.1f} | {target} "
            f"| {plain_value:.4f} | {our_value:.4f} |",
            flush=True,
        )
    start = time.perf_counter()
    metrics.evaluate(z, y)
    seconds = time.perf_counter() - start
    print(f"\nevaluate on {TRAIN}×10, all metrics with their chance levels: {seconds:.1f} s")


def agreement() -> None:
    """Print the scores of DCI's fast learner and the reference values of the golden cases."""
    from drkm import metrics

    print("\n| golden case | D fast | D reference | C fast | C reference | I fast | I reference |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    names = ("disentanglement", "completeness", "informativeness_test")
    pairs = []
    for path in sorted(GOLDEN.glob("p*.json")):
        expected = json.loads(path.read_text())["dci"]
        with np.load(path.with_suffix(".npz")) as data:
            train, test = data["train_idx"][:1000], data["test_idx"][:500]
            z, y = data["codes"], data["factors"]
        result = metrics.dci(z[train], y[train], z[test], y[test])
        pair = [(getattr(result, name), expected[name]["mean"]) for name in names]
        pairs.append(pair)
        print(f"| {path.stem} | " + " | ".join(f"{ours:.3f} | {theirs:.3f}" for ours, theirs in pair) + " |")
    table = np.array(pairs)
    for i, name in enumerate(names):
        ours, theirs = table[:, i].T
        print(
            f"{name}: correlation {np.corrcoef(ours, theirs)[0, 1]:.4f}, "
            f"mean offset {np.mean(ours - theirs):+.4f}, largest difference {np.abs(ours - theirs).max():.4f}"
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave the rival's DCI out")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        speed(options.quick)
        agreement()


if __name__ == "__main__":
    main()
