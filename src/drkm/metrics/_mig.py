"""Mutual information gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._information import bin_columns, entropy_of_counts, mutual_information
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import check_codes, check_factors, require_labels, require_varied
from drkm.validation import checks


@dataclass(frozen=True, eq=False, repr=False)
class MIG(MetricResult):
    """Mutual information gap.

    Attributes
    ----------
    score : float
        Mean of `per_factor`.
    per_factor : ndarray of shape (k,)
        Gap between the two codes that know most about each factor, as a share of its entropy.
    mutual_information : ndarray of shape (m, k)
        In nats.
    entropy : ndarray of shape (k,)
        In nats.
    """

    per_factor: np.ndarray
    mutual_information: np.ndarray
    entropy: np.ndarray


@metric(Score("score", "MIG"), of_each_factor=Score("per_factor", "MIG"))
def mig(codes: Any, factors: Any, *, bins: int = 20) -> MIG:
    """Mutual information gap: is each factor known to one code, and to no second one?

    MIG = mean over j of (I_(1)j - I_(2)j) / H_j, where I_(1)j and I_(2)j are the two largest plug-in mutual
    informations of a binned code with factor j, and H_j is the entropy of the factor.

    Parameters
    ----------
    codes : array-like of shape (n, m), m at least 2
    factors : array-like of shape (n, k)
        Labels, not binned; bin continuous factors with `drkm.metrics.discretize`.
    bins : int, default=20
        Equal-width bins of each code between its minimum and maximum.

    Returns
    -------
    MIG
        `float(result)` is in [0, 1].

    Notes
    -----
    Few rows and many bins bias the mutual informations upwards, the smaller ones more, which narrows the
    gap: compare scores at equal n and bins only. A factor with one value, for which the reference returns
    nan, and a single code, for which it raises an IndexError, are refused by name.
    """
    z = check_codes(codes, at_least=2)
    y = check_factors(factors, z.shape[0])
    require_varied(y, "MIG")
    require_labels(y, "MIG")
    information = mutual_information(bin_columns(z, checks.integer("bins", bins, 2)), y.labels, y.sizes)
    entropy = np.array([entropy_of_counts(np.bincount(y.labels[:, j])) for j in range(y.count)])
    ordered = np.sort(information, axis=0)
    per_factor = (ordered[-1] - ordered[-2]) / entropy
    return MIG(float(per_factor.mean()), per_factor, information, entropy)
