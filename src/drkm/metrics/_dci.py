"""Disentanglement, completeness, informativeness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from drkm.metrics._boosting import bin_codes, boost
from drkm.metrics._metric import Score, metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import match_labels, require_integer, require_varied, split

_EPSILON = 1e-11


@dataclass(frozen=True, eq=False, repr=False)
class DCI(MetricResult):
    """Disentanglement, completeness, informativeness.

    Attributes
    ----------
    score : float
        Same as `disentanglement`.
    disentanglement : float
        1 if each code matters for one factor only; nan for a single factor.
    completeness : float
        1 if one code matters for each factor; nan for a single code.
    informativeness_train, informativeness_test : float
        Mean accuracy of the classifiers.
    importances : ndarray of shape (m, k)
        Importance of each code for each factor; columns sum to 1.
    disentanglement_per_code : ndarray of shape (m,)
    completeness_per_factor : ndarray of shape (k,)
    learner : str
        The classifier behind the importances.
    """

    disentanglement: float
    completeness: float
    informativeness_train: float
    informativeness_test: float
    importances: np.ndarray
    disentanglement_per_code: np.ndarray
    completeness_per_factor: np.ndarray
    learner: str


@metric(
    Score("disentanglement", "DCI disentanglement"),
    Score("completeness", "DCI completeness"),
    Score("informativeness_test", "DCI informativeness"),
    of_each_factor=Score("completeness_per_factor", "DCI completeness"),
    repeats=3,
)
def dci(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    learner: Literal["fast", "reference"] = "fast",
    random_state: int = 0,
) -> DCI:
    """Disentanglement, completeness and informativeness, from the importances of boosted trees.

    R_lj is the importance of code l in a boosted classifier of factor j (columns sum to 1). Then::

        disentanglement = Σ_l ρ_l (1 - H_k(R_l·)),   ρ_l = Σ_j R_lj / Σ R,
        completeness    = Σ_j w_j (1 - H_m(R_·j)),   w_j = Σ_l R_lj / Σ R,

    with H_b the entropy to base b of the normalised row or column.

    Parameters
    ----------
    codes, factors : array-like of shape (n, m) and (n, k)
        Train rows; factors are labels.
    test_codes, test_factors : array-like of shape (t, m) and (t, k), optional
        Test rows, for the informativeness. By default a third of the rows, at random, are set aside.
    learner : {"fast", "reference"}, default="fast"
        "reference" is scikit-learn's GradientBoostingClassifier with its defaults; "fast" boosts the same
        trees on binned codes in fewer, larger steps. Report the learner with the score: they agree
        closely, not exactly.
    random_state : int, default=0
        Seed of the split, and of the order of ties in "reference"; "fast" draws nothing else.

    Returns
    -------
    DCI
        `float(result)` is the disentanglement, in [0, 1].

    Notes
    -----
    "informativeness" is an accuracy, as the reference computes it, not an error. scikit-learn's trees do not
    separate values closer than 1e-7; the fast learner has no such limit.
    """
    if learner not in ("fast", "reference"):
        raise ValueError(f'learner: expected "fast" or "reference", got {learner!r}')
    z, y, test_z, test_y = split(codes, factors, test_codes, test_factors, random_state)
    for rows in (y, test_y):
        require_integer(rows, "DCI")
    require_varied(y, "DCI")
    importances = np.empty((z.shape[1], y.count))
    train, test = np.empty(y.count), np.empty(y.count)
    for j in range(y.count):
        labels, test_labels = y.labels[:, j], match_labels(y, test_y, j)
        if learner == "fast":
            fitted = boost(bin_codes(z, test_z, labels, y.sizes[j]), labels, test_labels, y.sizes[j])
            importances[:, j], train[j], test[j] = (
                fitted.importances,
                fitted.train_accuracy,
                fitted.test_accuracy,
            )
        else:
            model = _reference_classifier(z, labels, random_state)
            importances[:, j] = np.abs(model.feature_importances_)
            train[j] = np.mean(model.predict(z) == labels)
            test[j] = np.mean(model.predict(test_z) == test_labels)

    per_code, disentanglement = _concentration(importances)
    per_factor, completeness = _concentration(importances.T)
    return DCI(
        score=disentanglement,
        disentanglement=disentanglement,
        completeness=completeness,
        informativeness_train=float(train.mean()),
        informativeness_test=float(test.mean()),
        importances=importances,
        disentanglement_per_code=per_code,
        completeness_per_factor=per_factor,
        learner=learner,
    )


def _reference_classifier(z: np.ndarray, labels: np.ndarray, random_state: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=random_state).fit(z, labels)


def _concentration(importances: np.ndarray) -> tuple[np.ndarray, float]:
    """Return 1 - normalised entropy of each row, and the average weighted by row sums (uniform if all are 0)."""
    rows, columns = importances.shape
    if columns == 1:
        return np.full(rows, np.nan), float("nan")
    share = importances + _EPSILON
    share = share / share.sum(axis=1, keepdims=True)
    per_row = 1.0 + (share * np.log(share)).sum(axis=1) / np.log(columns)
    weight = importances.sum(axis=1)
    if weight.sum() == 0:
        weight = np.ones(rows)
    return per_row, float(np.average(per_row, weights=weight))
