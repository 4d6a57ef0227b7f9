"""FactorVAE score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._sampling import GridSampler, RowSampler, make_sampler
from drkm.metrics._validation import check_random_state, constant_columns, standardized
from drkm.validation import checks

# Votes processed at a time, so that their rows stay in the cache.
_CHUNK = 2048


@dataclass(frozen=True, eq=False, repr=False)
class FactorVAE(MetricResult):
    """FactorVAE score.

    Attributes
    ----------
    score : float
        Accuracy of the majority vote on fresh votes; 0 if no code is active.
    train_score : float
        Accuracy on the votes that define the classifier.
    votes : ndarray of shape (k, m)
        Train votes: how often code l varied least while factor j was held fixed. Inactive codes have none.
    active : ndarray
        Columns of the active codes.
    """

    train_score: float
    votes: np.ndarray
    active: np.ndarray


def _when_all_is_pruned(result: FactorVAE) -> str:
    if result.active.size:
        return ""
    return "FactorVAE: every code has a standard deviation below 0.05 and was pruned: standardize the codes"


@metric(Score("score", "FactorVAE"), repeats=10, compares_factors=True, note=_when_all_is_pruned)
def factor_vae(
    codes: Any,
    factors: Any,
    *,
    factor_sizes: Sequence[int] | None = None,
    batch: int = 64,
    n_train: int = 10000,
    n_eval: int = 5000,
    threshold: float = 0.05,
    standardize: bool = False,
    random_state: int = 0,
) -> FactorVAE:
    """FactorVAE score: does the code that moves least tell which factor was held fixed?

    A vote fixes one factor, draws a batch, and names the code whose variance in the batch is smallest
    relative to its overall variance. Each code stands for the factor for which it was named most often;
    the score is how often that is right on fresh votes.

    Parameters
    ----------
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k)
        Labels. None is allowed with `factor_sizes`, if rows are in lexicographic order.
    factor_sizes : sequence of int, optional
        States that the rows are a full grid with that many values per factor, in any order: the other factors
        are then drawn uniformly and independently, as in the reference. By default batches are drawn,
        with replacement, from the given rows that share a value.
    batch : int, default=64
    n_train, n_eval : int, default=10000 and 5000
        Votes for the classifier and for the score.
    threshold : float, default=0.05
        Codes with a smaller standard deviation are ignored.
    standardize : bool, default=False
        Scale codes to unit variance first; then only constant codes are left out.
    random_state : int, default=0

    Returns
    -------
    FactorVAE
        `float(result)` is in [0, 1]; a classifier that knows nothing reaches about 1/k.

    Notes
    -----
    The threshold is absolute: codes of a kernel model (entries about n^-1/2) are all below it and score
    0; pass `standardize=True` for them. Two repairs of the reference: constant codes never take part
    (there, with threshold 0, their variances are nan and win every vote), and overall variances are those of
    all rows rather than of 10,000 random ones.
    """
    checks.integer("batch", batch, 2)
    checks.integer("n_train", n_train, 1)
    checks.integer("n_eval", n_eval, 1)
    if not isinstance(threshold, Real) or not threshold >= 0:
        raise ValueError(f"threshold: expected a number of at least 0, got {threshold!r}")
    sampler = make_sampler(codes, factors, factor_sizes, "the FactorVAE score")
    z = sampler.codes
    if standardize:
        z = standardized(z)
    variance = z.var(axis=0, ddof=1)
    active = np.flatnonzero((np.sqrt(variance) >= threshold) & ~constant_columns(z))
    votes = np.zeros((sampler.n_factors, z.shape[1]), dtype=np.intp)
    if active.size == 0:
        return FactorVAE(0.0, 0.0, votes, active)

    # Scaled to unit variance, the ratio of variances becomes a variance.
    scaled = (z[:, active] - z[:, active].mean(axis=0)) / np.sqrt(variance[active])
    moments = np.concatenate([scaled, scaled**2], axis=1)
    rng = check_random_state(random_state)
    train_factor, train_code = _vote(sampler, moments, batch, n_train, rng)
    test_factor, test_code = _vote(sampler, moments, batch, n_eval, rng)
    np.add.at(votes, (train_factor, active[train_code]), 1)
    stands_for = votes[:, active].argmax(axis=0)
    return FactorVAE(
        score=float(np.mean(stands_for[test_code] == test_factor)),
        train_score=float(np.mean(stands_for[train_code] == train_factor)),
        votes=votes,
        active=active,
    )


def _vote(
    sampler: RowSampler | GridSampler, moments: np.ndarray, batch: int, n_votes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the fixed factor and the code that varied least, for each vote."""
    from scipy.sparse import csr_array

    factor = rng.integers(sampler.n_factors, size=n_votes)
    code = np.empty(n_votes, dtype=np.intp)
    m = moments.shape[1] // 2
    for start in range(0, n_votes, _CHUNK):
        part = factor[start : start + _CHUNK]
        rows = sampler.batches(part, batch, rng, pairs=False)
        # Sums over a batch are the product of a 0/1 matrix with the codes: no copy of the drawn rows is made.
        drawn = csr_array(
            (np.ones(rows.size), rows.ravel(), np.arange(0, rows.size + 1, batch)),
            shape=(part.size, moments.shape[0]),
        )
        sums = drawn @ moments
        spread = sums[:, m:] - sums[:, :m] ** 2 / batch
        code[start : start + _CHUNK] = np.maximum(spread, 0.0).argmin(axis=1)
    return factor, code
