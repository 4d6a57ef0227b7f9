"""Dependence between the codes themselves: no factors needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._information import bin_columns, mutual_information
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import check_codes, constant_columns
from drkm.validation import checks

_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False, repr=False)
class Unsupervised(MetricResult):
    """Dependence between codes.

    Attributes
    ----------
    score : float
        Same as `total_correlation`.
    total_correlation : float
        Total correlation of a Gaussian with the covariance of the codes, in nats; inf if a code is a linear
        function of the others.
    wasserstein_correlation : float
        Squared 2-Wasserstein distance of that Gaussian from the one with the same variances and no
        correlation.
    wasserstein_correlation_norm : float
        The same, divided by the total variance.
    mutual_information : float
        Mean over pairs of codes of the plug-in mutual information of the binned codes, in nats.
    """

    total_correlation: float
    wasserstein_correlation: float
    wasserstein_correlation_norm: float
    mutual_information: float


@metric(
    Score("total_correlation", "total correlation", "low"),
    Score("wasserstein_correlation_norm", "Wasserstein corr. (norm.)", "low"),
    Score("mutual_information", "pairwise mutual information", "low"),
    takes_factors=False,
)
def unsupervised(codes: Any, *, bins: int = 20) -> Unsupervised:
    """Dependence between codes: total correlation, Wasserstein correlation, pairwise mutual information.

    With C the covariance of the codes and D its diagonal,

        total correlation        ½ (log det D - log det C),
        Wasserstein correlation  2 tr C - 2 tr (D C)^½, also divided by tr C.

    Parameters
    ----------
    codes : array-like of shape (n, m), m at least 2 and n more than m
    bins : int, default=20
        Equal-width bins of each code, for the mutual information.

    Returns
    -------
    Unsupervised
        `float(result)` is the total correlation: 0 for uncorrelated codes, without upper bound. All
        four are small for independent codes.

    Notes
    -----
    Constant codes are left out of the total correlation (the reference gives nan); they contribute 0 to
    the Wasserstein correlation and to the mean mutual information, as in the reference. A duplicated code
    gives an infinite total correlation and always a real Wasserstein correlation.
    """
    z = check_codes(codes, at_least=2)
    if z.shape[0] < 2:
        raise ValueError(f"codes: at least 2 rows are needed for a covariance, got {z.shape[0]}")
    binned = bin_columns(z, checks.integer("bins", bins, 2))
    m = z.shape[1]
    pairs = mutual_information(binned, binned, (bins,) * m)
    mutual = float((pairs.sum() - np.trace(pairs)) / (m * (m - 1)))

    z = z[:, ~constant_columns(z)]
    if z.shape[1] == 0:
        return Unsupervised(0.0, 0.0, 0.0, 0.0, mutual)
    if z.shape[0] <= z.shape[1]:
        needed = z.shape[1] + 1
        raise ValueError(f"codes: the covariance of {z.shape[1]} codes needs at least {needed} rows, got {z.shape[0]}")
    with np.errstate(over="ignore", invalid="ignore"):
        z = (z - z.mean(axis=0)) / np.sqrt(z.shape[0] - 1)
        variances = (z * z).sum(axis=0)
    if not np.all((variances >= _TINY) & (variances < np.inf)):
        raise ValueError("codes: their variances are beyond float64, divide the codes by their typical size")
    scale = np.sqrt(variances)
    # The eigenvalues of (D C)^½ are those of (D^½ C D^½)^½: real, and the singular values of z D^½.
    # With the eigenvalues of D C, codes of small variance would lose half their digits.
    trace = (scale**2).sum()
    wasserstein = float(max(2 * trace - 2 * _singular_values(z * scale).sum(), 0.0))
    total = _total_correlation(z / scale)
    return Unsupervised(total, total, wasserstein, float(wasserstein / trace), mutual)


def _singular_values(a: np.ndarray) -> np.ndarray:
    return np.linalg.svd(np.linalg.qr(a, mode="r"), compute_uv=False)


def _total_correlation(normalised: np.ndarray) -> float:
    singular = _singular_values(normalised)
    if singular.size < normalised.shape[1] or singular[-1] <= max(normalised.shape) * _EPS * singular[0]:
        return float("inf")
    return float(-np.log(singular).sum())
