"""Separated attribute predictability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._svm1d import fit_one_against_rest
from drkm.metrics._validation import (
    Factors,
    check_codes,
    check_factors,
    match_labels,
    require_integer,
    require_varied,
    split,
    standardized,
)

_NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class SAP(MetricResult):
    """Separated attribute predictability.

    Attributes
    ----------
    score : float
        Mean of `per_factor`.
    per_factor : ndarray of shape (k,)
        Gap between the two codes that predict each factor best.
    matrix : ndarray of shape (m, k)
        Accuracy on test rows (discrete), or squared correlation (continuous), of each code for each factor.
    continuous : bool
        Which of the two `matrix` contains.
    """

    per_factor: np.ndarray
    matrix: np.ndarray
    continuous: bool


@metric(Score("score", "SAP"), of_each_factor=Score("per_factor", "SAP"))
def sap(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    continuous: bool = False,
    standardize: bool = False,
    random_state: int = 0,
) -> SAP:
    """Separated attribute predictability: does one code alone predict a factor, and no second one?

    SAP = mean over j of S_(1)j - S_(2)j, the two largest over codes. For discrete factors S_lj is the
    accuracy on test rows of a balanced one-against-rest linear support vector machine (squared hinge, C =
    0.01, penalised intercept) of code l alone; for continuous factors it is the squared correlation of
    code and factor.

    Parameters
    ----------
    codes, factors : array-like of shape (n, m) and (n, k), m at least 2
        Train rows.
    test_codes, test_factors : array-like of shape (t, m) and (t, k), optional
        Test rows. By default a third of the rows, at random, are set aside. Not used if `continuous`.
    continuous : bool, default=False
        Take factors as numbers rather than labels.
    standardize : bool, default=False
        Scale codes to unit variance first (by the train rows).
    random_state : int, default=0
        Seed of that split; the machines themselves are solved exactly.

    Returns
    -------
    SAP
        `float(result)` is in [0, 1].

    Notes
    -----
    Discrete SAP depends on scale and offset of the codes, since the machine is regularised: on codes of a
    kernel model (entries about n^-1/2) pass `standardize=True`. Continuous SAP counts a code with
    variance at most 1e-12 as constant, by the reference's rule; `standardize=True` avoids that too.

    The machines are solved to rounding error, where LIBLINEAR stops earlier: on codes of ordinary scale
    single accuracies differ from scikit-learn's `LinearSVC(C=0.01, class_weight="balanced")` by a test row
    or two, on codes far from 0 relative to their spread by more, since LIBLINEAR does not converge there.
    """
    if continuous:
        z = check_codes(codes, at_least=2)
        y = check_factors(factors, z.shape[0])
        require_varied(y, "SAP")
        matrix = _squared_correlations(standardized(z) if standardize else z, y.values.astype(np.float64))
    else:
        z, y, test_z, test_y = split(codes, factors, test_codes, test_factors, random_state, at_least=2)
        require_integer(y, "SAP with continuous=False")
        require_integer(test_y, "SAP with continuous=False")
        require_varied(y, "SAP")
        if standardize:
            z, test_z = standardized(z), standardized(test_z, like=z)
        matrix = _accuracies(z, y, test_z, test_y)
    ordered = np.sort(matrix, axis=0)
    per_factor = ordered[-1] - ordered[-2]
    return SAP(float(per_factor.mean()), per_factor, matrix, continuous)


def _squared_correlations(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    z, y = z - z.mean(axis=0), y - y.mean(axis=0)
    freedom = z.shape[0] - 1
    variance_z = (z * z).sum(axis=0) / freedom
    variance_y = (y * y).sum(axis=0) / freedom
    covariance = z.T @ y / freedom
    alive = variance_z > _NO_VARIANCE
    scale = np.where(alive, variance_z, 1.0)[:, None] * variance_y
    return np.where(alive[:, None], covariance**2 / scale, 0.0)


def _accuracies(z: np.ndarray, y: Factors, test_z: np.ndarray, test_y: Factors) -> np.ndarray:
    weights, intercepts = fit_one_against_rest(z, y.labels, y.sizes)
    matrix = np.empty((z.shape[1], y.count))
    first = 0
    for j, size in enumerate(y.sizes):
        machines = slice(first, first + (1 if size == 2 else size))
        first = machines.stop
        truth = match_labels(y, test_y, j)
        for code in range(z.shape[1]):
            decision = np.multiply.outer(test_z[:, code], weights[code, machines]) + intercepts[code, machines]
            predicted = (decision[:, 0] > 0).astype(np.intp) if size == 2 else decision.argmax(axis=1)
            matrix[code, j] = np.mean(predicted == truth)
    return matrix
