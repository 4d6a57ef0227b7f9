"""Interventional robustness score."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from drkm.metrics._information import bin_columns
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import (
    Factors,
    check_codes,
    check_factors,
    constant_columns,
    standardized,
)
from drkm.validation import checks


@dataclass(frozen=True, eq=False, repr=False)
class IRS(MetricResult):
    """Interventional robustness.

    Attributes
    ----------
    score : float
        Average of `scores` weighted by `max_deviations`; 0 if every code is constant.
    scores : ndarray of shape (active,)
        Best entry of each row of `matrix`.
    parents : ndarray of shape (active,)
        Factor of that entry, the first on ties.
    matrix : ndarray of shape (active, k)
        Robustness of each active code to each factor.
    max_deviations : ndarray of shape (active,)
        Largest distance of each active code from its mean: the weights.
    active : ndarray of shape (active,)
        Columns that are not constant.
    """

    scores: np.ndarray
    parents: np.ndarray
    matrix: np.ndarray
    max_deviations: np.ndarray
    active: np.ndarray


@metric(Score("score", "IRS"))
def irs(
    codes: Any,
    factors: Any,
    *,
    bins: int | None = 20,
    quantile: float = 0.99,
    standardize: bool = False,
) -> IRS:
    """Interventional robustness: how little a code moves while one factor is held fixed.

    With M_l the largest `|z_l - mean z_l|`, and D_li the mean over the values of factor i of the
    `quantile` of `|z_l - group mean|` inside the group,

        IRS_li = 1 - D_li / M_l,    IRS = Σ_l M_l max_i IRS_li / Σ_l M_l.

    Parameters
    ----------
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k)
        Any numbers; continuous ones need `bins`.
    bins : int or None, default=20
        Equal-width bins to which each factor is reduced first, as in the reference implementation; None takes
        the factors unchanged. It matters once a factor has more than 20 values.
    quantile : float, default=0.99
        1.0 is the maximum of the original definition.
    standardize : bool, default=False
        Scale codes to unit variance first. The matrix does not change, the weights do.

    Returns
    -------
    IRS
        `float(result)` is at most 1, and can be slightly negative.

    Notes
    -----
    The score of uninformative codes is far from 0 and depends on n and on tails: report it together with
    `drkm.metrics.chance`.

    Differs from the reference in two repairs: constant codes are found by their range (their rounded
    variance made the reference return nan or -inf), and `active` lists the active codes (the reference
    returns a sum of values under that name).
    """
    z = check_codes(codes)
    y = check_factors(factors, z.shape[0])
    if not isinstance(quantile, Real) or not 0 < quantile <= 1:
        raise ValueError(f"quantile: expected a number above 0 and at most 1, got {quantile!r}")
    if bins is None:
        labels, sizes = y.labels, y.sizes
    else:
        labels, sizes = _binned_labels(y, checks.integer("bins", bins, 2)), (bins,) * y.count

    active = np.flatnonzero(~constant_columns(z))
    if active.size == 0:
        empty = np.empty(0)
        return IRS(0.0, empty, np.empty(0, dtype=np.intp), np.empty((0, y.count)), empty.copy(), active)
    z = z[:, active]
    if standardize:
        z = standardized(z)
    largest = np.abs(z - z.mean(axis=0)).max(axis=0)
    deviation = np.stack([_mean_deviation(z, labels[:, i], sizes[i], quantile) for i in range(y.count)], axis=1)
    matrix = 1.0 - deviation / largest[:, None]
    scores = matrix.max(axis=1)
    return IRS(
        score=float(np.average(scores, weights=largest)),
        scores=scores,
        parents=matrix.argmax(axis=1),
        matrix=matrix,
        max_deviations=largest,
        active=active,
    )


def _binned_labels(y: Factors, bins: int) -> np.ndarray:
    """Return the factors in equal-width bins; only their few distinct values need binning."""
    labels = np.empty(y.labels.shape, dtype=np.intp)
    for j, levels in enumerate(y.levels):
        labels[:, j] = bin_columns(levels[:, None].astype(np.float64), bins)[y.labels[:, j], 0]
    return labels


def _mean_deviation(z: np.ndarray, labels: np.ndarray, size: int, quantile: float) -> np.ndarray:
    """Return the mean over groups of the quantile of the distances to the group mean, for all codes at once."""
    counts = np.bincount(labels, minlength=size)
    counts = counts[counts > 0]
    starts = np.cumsum(counts) - counts
    # One row per code, so that sums and partitions run over contiguous memory.
    grouped = np.take(z.T, _stable_order(labels, size), axis=1)
    means = np.add.reduceat(grouped, starts, axis=1) / counts
    distance = np.abs(grouped - np.repeat(means, counts, axis=1))
    total = np.zeros(z.shape[1])
    for start, count in zip(starts, counts, strict=True):
        total += _row_quantile(distance[:, start : start + count], quantile)
    return total / len(counts)


def _stable_order(labels: np.ndarray, size: int) -> np.ndarray:
    # numpy sorts 16-bit integers by radix, ten times faster than wider ones.
    return np.argsort(labels.astype(np.int16) if size < 2**15 else labels, kind="stable")


def _row_quantile(values: np.ndarray, quantile: float) -> np.ndarray:
    """Return the linearly interpolated quantile of every row; np.quantile would cost more than all the rest."""
    place = quantile * (values.shape[1] - 1)
    low = int(place)
    if low == values.shape[1] - 1:
        return values.max(axis=1)
    ordered = np.partition(values, low, axis=1)
    above = ordered[:, low + 1 :].min(axis=1)
    return ordered[:, low] + (place - low) * (above - ordered[:, low])
