"""Explicitness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._logistic import logistic_regression
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import match_labels, require_integer, require_varied, split, standardized


@dataclass(frozen=True, eq=False, repr=False)
class Explicitness(MetricResult):
    """Explicitness.

    Attributes
    ----------
    score : float
        Mean area under the curve on test rows.
    train_score : float
        The same on train rows.
    per_factor : ndarray of shape (k,)
        Test value of each factor.
    """

    train_score: float
    per_factor: np.ndarray


@metric(Score("score", "explicitness"), of_each_factor=Score("per_factor", "explicitness"), repeats=5)
def explicitness(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    random_state: int = 0,
) -> Explicitness:
    """Explicitness: can a linear classifier read each factor from all the codes?

    For each factor, multinomial logistic regression (C = 1) on standardised codes; the score is the area
    under the ROC curve of each class against the rest, averaged over classes, then over factors.

    Parameters
    ----------
    codes, factors : array-like of shape (n, m) and (n, k)
        Train rows.
    test_codes, test_factors : array-like of shape (t, m) and (t, k), optional
        Test rows. By default a third of the rows, at random, are set aside.
    random_state : int, default=0
        Seed of that split.

    Returns
    -------
    Explicitness
        `float(result)` is in [0, 1]; 0.5 is chance.

    Notes
    -----
    Two repairs of the reference, which raises in both cases: a constant code is standardised to 0, and a
    class that is missing from the test rows is left out of the average there.
    """
    z, y, test_z, test_y = split(codes, factors, test_codes, test_factors, random_state)
    for rows in (y, test_y):
        require_integer(rows, "explicitness")
    require_varied(y, "explicitness")
    z, test_z = standardized(z), standardized(test_z, like=z)
    train, test = np.empty(y.count), np.empty(y.count)
    for j in range(y.count):
        model = logistic_regression(z, y.labels[:, j])
        train[j] = _mean_auc(model.predict_proba(z), y.labels[:, j])
        test[j] = _mean_auc(model.predict_proba(test_z), match_labels(y, test_y, j))
    if not np.isfinite(test).all():
        j = int(np.argmin(np.isfinite(test)))
        raise ValueError(
            f"test_factors: explicitness needs test rows of at least two values of each factor, {y.names[j]} "
            f"(column {j}) has fewer that were seen in training"
        )
    return Explicitness(float(test.mean()), float(train.mean()), test)


def _mean_auc(probability: np.ndarray, labels: np.ndarray) -> float:
    """Return the area under the ROC curve of each column for its class, averaged over the classes that occur."""
    from scipy.stats import rankdata

    n, size = probability.shape
    positive = labels[:, None] == np.arange(size)
    count = positive.sum(axis=0)
    usable = (count > 0) & (count < n)
    if not usable.any():
        return float("nan")
    rank = rankdata(probability[:, usable], axis=0)
    count = count[usable]
    wins = (rank * positive[:, usable]).sum(axis=0) - count * (count + 1) / 2
    return float((wins / (count * (n - count))).mean())
