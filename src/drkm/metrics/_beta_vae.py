"""BetaVAE score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._logistic import logistic_regression
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._sampling import GridSampler, RowSampler, make_sampler
from drkm.metrics._validation import check_random_state, standardized
from drkm.validation import checks

# Samples processed at a time, so that their rows stay in the cache.
_CHUNK = 256


@dataclass(frozen=True, eq=False, repr=False)
class BetaVAEScore(MetricResult):
    """BetaVAE score.

    Attributes
    ----------
    score : float
        Accuracy of the linear classifier on fresh samples.
    train_score : float
        Accuracy on the samples it was fitted to.
    """

    train_score: float


@metric(Score("score", "BetaVAE"), repeats=5, compares_factors=True)
def beta_vae(
    codes: Any,
    factors: Any,
    *,
    factor_sizes: Sequence[int] | None = None,
    batch: int = 64,
    n_train: int = 10000,
    n_eval: int = 5000,
    standardize: bool = False,
    random_state: int = 0,
) -> BetaVAEScore:
    """BetaVAE score: can a linear classifier tell which factor two batches share?

    A sample fixes one factor and draws `batch` pairs of rows that share its value; the features are the
    mean `|z - z'|` of each code. The score is the accuracy of logistic regression (C = 1) that predicts the
    factor.

    Parameters
    ----------
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k), k at least 2
        Labels. None is allowed with `factor_sizes`, if rows are in lexicographic order.
    factor_sizes : sequence of int, optional
        States that the rows are a full grid with that many values per factor, in any order: the other factors
        are then drawn uniformly and independently, as in the reference. By default pairs are drawn from
        the given rows.
    batch : int, default=64
    n_train, n_eval : int, default=10000 and 5000
        Samples for the classifier and for the score.
    standardize : bool, default=False
        Scale codes to unit variance first.
    random_state : int, default=0

    Returns
    -------
    BetaVAEScore
        `float(result)` is in [0, 1]; chance is about 1/k.

    Notes
    -----
    The classifier is regularised and its features are not scaled, so that small codes score low whatever they
    contain: pass `standardize=True` for codes of a kernel model. A code that mixes all factors can score 1.
    """
    checks.integer("batch", batch, 1)
    checks.integer("n_train", n_train, 2)
    checks.integer("n_eval", n_eval, 1)
    sampler = make_sampler(codes, factors, factor_sizes, "the BetaVAE score")
    if sampler.n_factors < 2:
        raise ValueError("factors: the BetaVAE score tells factors apart and needs at least two, got 1")
    z = standardized(sampler.codes) if standardize else sampler.codes
    rng = check_random_state(random_state)
    train_factor, train_x = _samples(sampler, z, batch, n_train, rng)
    test_factor, test_x = _samples(sampler, z, batch, n_eval, rng)
    model = logistic_regression(train_x, train_factor, random_state)
    return BetaVAEScore(float(model.score(test_x, test_factor)), float(model.score(train_x, train_factor)))


def _samples(
    sampler: RowSampler | GridSampler, z: np.ndarray, batch: int, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shared factor of each sample, and the mean distance of its pairs in each code."""
    factor = rng.integers(sampler.n_factors, size=count)
    x = np.empty((count, z.shape[1]))
    for start in range(0, count, _CHUNK):
        part = factor[start : start + _CHUNK]
        left, right = sampler.batches(part, batch, rng, pairs=True)
        distance = z[left]
        distance -= z[right]
        np.abs(distance, out=distance)
        x[start : start + _CHUNK] = distance.mean(axis=1)
    return factor, x
