"""Modularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._information import bin_columns, mutual_information
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import check_codes, check_factors, require_labels
from drkm.validation import checks


@dataclass(frozen=True, eq=False, repr=False)
class Modularity(MetricResult):
    """Modularity.

    Attributes
    ----------
    score : float
        Mean of `per_code`; nan for a single factor, where it is not defined.
    per_code : ndarray of shape (m,)
        1 for a code that knows only one factor, 0 for one that knows all equally, or nothing.
    mutual_information : ndarray of shape (m, k)
        In nats.
    """

    per_code: np.ndarray
    mutual_information: np.ndarray


@metric(Score("score", "modularity"), compares_factors=True)
def modularity(codes: Any, factors: Any, *, bins: int = 20) -> Modularity:
    """Modularity: does each code know about one factor at most?

    The mean over codes l of 1 - (Σ_j I_lj² - max_j I_lj²) / ((k - 1) max_j I_lj²), where I_lj is the
    plug-in mutual information of binned code l and factor j.

    Parameters
    ----------
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k)
        Labels; bin continuous factors with `drkm.metrics.discretize`.
    bins : int, default=20
        Equal-width bins of each code.

    Returns
    -------
    Modularity
        `float(result)` is in [0, 1], or nan for one factor.

    Notes
    -----
    All codes have the same weight, informative or not: pure noise scores high, a constant code scores
    exactly 0 (in the reference that depends on the version of scikit-learn). A factor with one value is
    allowed, as in the reference, but raises the score: leave it out.
    """
    z = check_codes(codes)
    y = check_factors(factors, z.shape[0])
    require_labels(y, "modularity")
    information = mutual_information(bin_columns(z, checks.integer("bins", bins, 2)), y.labels, y.sizes)
    if y.count == 1:
        return Modularity(float("nan"), np.full(z.shape[1], np.nan), information)
    squared = information**2
    best = squared.max(axis=1)
    alive = best > 0
    rest = (squared.sum(axis=1) - best) / ((y.count - 1) * np.where(alive, best, 1.0))
    per_code = np.where(alive, 1.0 - rest, 0.0)
    return Modularity(float(per_code.mean()), per_code, information)
