"""Equal-width binning and plug-in mutual information, from contingency counts of all columns at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from drkm.metrics._validation import as_array
from drkm.validation import checks


def bin_columns(values: np.ndarray, bins: int) -> np.ndarray:
    """Equal-width bins of every column, from 0; they are closed on the left, a constant falls in bin 0.

    Parameters
    ----------
    values : ndarray of shape (n, m)
    bins : int

    Returns
    -------
    ndarray of shape (n, m), intp
    """
    result = np.zeros(values.shape, dtype=np.intp)
    for column in range(values.shape[1]):
        x = np.ascontiguousarray(values[:, column])
        low, high = x.min(), x.max()
        if low < high:
            edges = np.linspace(low, high, bins + 1)
            result[:, column] = np.searchsorted(edges[1:bins], x, side="right")
    return result


def discretize(values: Any, bins: int = 20) -> np.ndarray:
    """Equal-width bins of every column, from its minimum to its maximum.

    This is how the metrics here bin codes; use it to turn continuous factors into the labels that metrics of
    discrete factors need.

    Parameters
    ----------
    values : array-like of shape (n, m)
    bins : int, default=20

    Returns
    -------
    ndarray of shape (n, m), intp
        Bin numbers from 0 to `bins - 1`; bins are closed on the left. A constant column is all zero.
    """
    array = as_array(values, "values").astype(np.float64)
    return bin_columns(array, checks.integer("bins", bins, 2))


def entropy_of_counts(counts: np.ndarray) -> np.ndarray:
    """Plug-in entropy in nats over the last axis of `counts`."""
    total = counts.sum(axis=-1)
    safe = np.where(counts > 0, counts, 1)
    return np.log(total) - (counts * np.log(safe)).sum(axis=-1) / total


def mutual_information(binned: np.ndarray, labels: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Plug-in mutual information in nats of every column of `binned` with every column of `labels`.

    I(a; b) = Σ p(a, b) log( p(a, b) / p(a) p(b) ), with p the observed frequencies.

    Parameters
    ----------
    binned : ndarray of shape (n, m), non-negative integers
    labels : ndarray of shape (n, k), non-negative integers
    sizes : tuple of int
        Column j of `labels` is below `sizes[j]`.

    Returns
    -------
    ndarray of shape (m, k)
    """
    n, m = binned.shape
    bins = int(binned.max()) + 1
    start = binned + np.arange(m) * bins
    result = np.empty((m, labels.shape[1]))
    for j, size in enumerate(sizes):
        cell = start * size + labels[:, j : j + 1]
        counts = np.bincount(cell.ravel(), minlength=m * bins * size).reshape(m, bins, size)
        rows, columns = counts.sum(axis=2), counts.sum(axis=1)
        expected = rows[:, :, None] * columns[:, None, :]
        observed = counts > 0
        ratio = np.ones(counts.shape)
        np.divide(counts * n, expected, out=ratio, where=observed)
        information = (counts * np.log(ratio)).sum(axis=(1, 2)) / n
        # Exactly independent tables, such as those of a constant, must give exactly 0: modularity divides
        # by it.
        information[(rows > 0).sum(axis=1) == 1] = 0.0
        result[:, j] = np.maximum(information, 0.0)
    return result
