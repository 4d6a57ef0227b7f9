"""Gradient boosting of shallow trees on binned codes, all classes of a factor grown side by side.

The model is that of scikit-learn's GradientBoostingClassifier (log-loss, trees of depth 3 on the residuals of
each class, one Newton step per leaf, importances by the decrease of squared error). Two things are coarser, and
make it fast: splits are sought between a few dozen bins of a code, so that one sparse product gives the
residual sums of all codes, bins and classes; and later rounds take fewer, longer steps along the same path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MIN_BINS, MAX_BINS = 64, 256
# (number of rounds, step size). The reference takes 100 rounds with step size 0.1. The first ones decide
# most of the importances and are kept; later ones are few and long, and each counts as many times as the
# short rounds that it replaces.
SCHEDULE = ((10, 0.1), (10, 0.2), (15, 0.4), (2, 0.5))
_REFERENCE_RATE = 0.1
_CONVERGED = 1e-3
_NO_GAIN = 1e-7
_TIE = 1e-5


@dataclass(frozen=True)
class Boosted:
    """The properties of a fitted booster that DCI needs.

    Attributes
    ----------
    importances : ndarray of shape (m,)
        Share of the decrease of squared error; sums to 1, or all 0 if nothing could be split.
    train_accuracy, test_accuracy : float
    """

    importances: np.ndarray
    train_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class Binned:
    """Train and test codes in bins.

    Attributes
    ----------
    train, test : ndarray of shape (n, m) and (t, m), uint8
    members : csr_array of shape (m * bins, n), float32
        Row l * bins + b marks the train rows whose code l is in bin b.
    bins : int
    """

    train: np.ndarray
    test: np.ndarray
    members: Any
    bins: int


def bin_codes(codes: np.ndarray, test_codes: np.ndarray, labels: np.ndarray, size: int) -> Binned:
    """Bin each code with the borders of a tree that separates the classes by that code alone.

    Borders at quantiles would cut through ranges of a single class, and distort importances.

    Parameters
    ----------
    codes, test_codes : ndarray of shape (n, m) and (t, m)
    labels : ndarray of shape (n,)
    size : int
        Number of classes.

    Returns
    -------
    Binned
    """
    from scipy.sparse import csr_array
    from sklearn.tree import DecisionTreeClassifier

    n, m = codes.shape
    bins = min(max(MIN_BINS, 2 * size), MAX_BINS)
    train, test = np.zeros((n, m), dtype=np.uint8), np.zeros(test_codes.shape, dtype=np.uint8)
    for code in range(m):
        levels, rank = np.unique(codes[:, code], return_inverse=True)
        if levels.size <= bins:
            cuts = np.arange(1, levels.size)
        else:
            # Ranks rather than values: scikit-learn's trees ignore differences below 1e-7.
            tree = DecisionTreeClassifier(max_leaf_nodes=bins, random_state=0)
            tree.fit(rank.reshape(-1, 1).astype(np.float32), labels)
            cuts = np.sort(np.ceil(tree.tree_.threshold[tree.tree_.feature >= 0])).astype(np.intp)
        edges = levels[cuts - 1] + (levels[cuts] - levels[cuts - 1]) / 2
        train[:, code] = np.searchsorted(cuts, rank.reshape(-1), side="right")
        test[:, code] = np.searchsorted(edges, test_codes[:, code])
    bins = int(train.max()) + 1
    cell = (train + np.arange(m) * bins).ravel()
    order = np.argsort(cell.astype(np.int16), kind="stable") if m * bins < 2**15 else np.argsort(cell, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=m * bins))])
    members = csr_array((np.ones(n * m, dtype=np.float32), order // m, start), shape=(m * bins, n))
    return Binned(train, test, members, bins)


def boost(binned: Binned, labels: np.ndarray, test_labels: np.ndarray, size: int) -> Boosted:
    """Fit a classifier of `labels`.

    Parameters
    ----------
    binned : Binned
    labels : ndarray of shape (n,)
        Classes 0 .. size - 1, all present.
    test_labels : ndarray of shape (t,)
        Labels with the same numbering; -1 for a class not seen in training.
    size : int

    Returns
    -------
    Boosted
    """
    n, m = binned.train.shape
    frequency = np.bincount(labels, minlength=size) / n
    if size == 2:
        # One tree per round for two classes: the log-odds of class 1.
        target = labels[:, None].astype(np.float64)
        start = np.log(frequency[1:] / frequency[:1])
    else:
        target = (labels[:, None] == np.arange(size)).astype(np.float64)
        start = np.log(frequency)
    raw = np.tile(start, (n, 1))
    test_raw = np.tile(start, (binned.test.shape[0], 1))
    gains = np.zeros(m)
    rates = np.repeat([rate for _, rate in SCHEDULE], [rounds for rounds, _ in SCHEDULE])
    for done, rate in enumerate(rates):
        residual = target - _probability(raw)
        leaf, test_leaf, gain = _grow(binned, residual.astype(np.float32))
        gains += rate / _REFERENCE_RATE * gain
        step = rate * _newton_step(residual, leaf, size)
        raw += _values(step, leaf)
        test_raw += _values(step, test_leaf)
        if gain.sum() * rates[done + 1 :].sum() / _REFERENCE_RATE < _CONVERGED * gains.sum():
            break
    total = gains.sum()
    return Boosted(
        importances=gains / total if total > 0 else gains,
        train_accuracy=float(np.mean(_predict(raw) == labels)),
        test_accuracy=float(np.mean(_predict(test_raw) == test_labels)),
    )


def _probability(raw: np.ndarray) -> np.ndarray:
    if raw.shape[1] == 1:
        return 1 / (1 + np.exp(-raw))
    p = np.exp(raw - raw.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def _predict(raw: np.ndarray) -> np.ndarray:
    return (raw[:, 0] > 0).astype(np.intp) if raw.shape[1] == 1 else raw.argmax(axis=1)


def _grow(binned: Binned, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grow one tree of depth 3 for each column of `residual`.

    Returns the leaf (0 .. 7) of every train and every test row in every tree, and the gain of each code,
    summed over all trees.
    """
    n, trees = residual.shape
    m, bins = binned.train.shape[1], binned.bins
    leaf = np.zeros((n, trees), dtype=np.int32)
    test_leaf = np.zeros((binned.test.shape[0], trees), dtype=np.int32)
    gains = np.zeros(m)
    ones = np.ones((n, 1), dtype=np.float32)
    sums = (binned.members @ residual).reshape(1, m, bins, trees)
    counts = np.broadcast_to((binned.members @ ones).reshape(1, m, bins, 1), sums.shape)
    for depth in range(3):
        code, border, credit = _best_splits(sums, counts)
        gains += credit
        goes = _goes_right(binned.train, leaf, code, border)
        if depth < 2:
            sums, counts = _split_sums(binned, residual, leaf, goes, sums, counts)
        leaf = 2 * leaf + goes
        test_leaf = 2 * test_leaf + _goes_right(binned.test, test_leaf, code, border)
    return leaf, test_leaf, gains


def _goes_right(binned: np.ndarray, leaf: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray:
    """Return whether each row goes right at its current node, in each tree."""
    n, m = binned.shape
    trees = leaf.shape[1]
    if code.shape[0] == 1:
        return binned[:, code[0]] > border[0]
    place = leaf * trees + np.arange(trees, dtype=np.int32)
    cell = code.ravel()[place] + m * np.arange(n, dtype=np.int32)[:, None]
    return binned.ravel()[cell] > border.ravel()[place]


def _split_sums(
    binned: Binned,
    residual: np.ndarray,
    leaf: np.ndarray,
    goes: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return histograms of the children: left ones by a product, right ones by subtraction from the parents."""
    nodes, m, bins, trees = sums.shape
    parts = []
    for node in range(nodes):
        left = ((leaf == node) & ~goes).astype(np.float32)
        parts += [residual * left, left]
    histogram = (binned.members @ np.concatenate(parts, axis=1)).reshape(m, bins, nodes, 2, trees)
    left_sums, left_counts = np.moveaxis(histogram, (2, 3), (0, 1)).swapaxes(0, 1)
    child_sums = np.stack([left_sums, sums - left_sums], axis=1).reshape(2 * nodes, m, bins, trees)
    child_counts = np.stack([left_counts, counts - left_counts], axis=1).reshape(2 * nodes, m, bins, trees)
    return child_sums, child_counts


def _best_splits(sums: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return code and last left bin of the best split of each node of each tree, and the total gain of each code."""
    nodes, m, bins, trees = sums.shape
    left, n_left = np.cumsum(sums, axis=2), np.cumsum(counts, axis=2)
    total, n_total = left[:, :1, -1:], n_left[:, :1, -1:]
    n_right = n_total - n_left
    weight = n_left * n_right
    gain = np.zeros_like(left)
    # n_l n_r / n (mean_l - mean_r)², written without the two means
    difference = left * n_total - total * n_left
    np.divide(difference**2, weight * n_total, out=gain, where=weight > 0)
    flat = gain.reshape(nodes, m * bins, trees)
    best = flat.argmax(axis=1)
    value = np.take_along_axis(flat, best[:, None], axis=1)
    useful = value > _NO_GAIN
    # scikit-learn chooses among equally good codes at random; sharing the credit gives the expected value.
    tied = (gain.max(axis=2) >= (1 - _TIE) * value) & useful
    credit = (tied * (value / np.maximum(tied.sum(axis=1, keepdims=True), 1))).sum(axis=(0, 2))
    return (best // bins).astype(np.int32), np.where(useful[:, 0], best % bins, bins), credit


def _values(step: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    trees = step.shape[1]
    return step.ravel()[leaf * trees + np.arange(trees, dtype=np.int32)]


def _newton_step(residual: np.ndarray, leaf: np.ndarray, size: int) -> np.ndarray:
    """Return (K - 1)/K Σ r / Σ |r| (1 - |r|) in each leaf of each tree; without the factor for two classes."""
    trees = residual.shape[1]
    place = (leaf * trees + np.arange(trees, dtype=np.int32)).ravel()
    magnitude = np.abs(residual)
    numerator = np.bincount(place, residual.ravel(), minlength=8 * trees)
    denominator = np.bincount(place, (magnitude * (1 - magnitude)).ravel(), minlength=8 * trees)
    step = np.divide(numerator, denominator, out=np.zeros(8 * trees), where=denominator > 1e-150)
    # A row that is certainly wrong would get an unbounded step. No step needs to be longer than the first one of a pure
    # leaf; with longer ones such rows would flip back and forth forever in steps larger than the reference's.
    np.clip(step, -size, size, out=step)
    return (1.0 if trees == 1 else (size - 1) / size) * step.reshape(8, trees)
