"""The linear classifier of explicitness and of the BetaVAE score."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def logistic_regression(z: np.ndarray, labels: np.ndarray, random_state: int | None = None) -> Any:
    """Fit scikit-learn's logistic regression with its defaults, without a warning after 100 iterations.

    The reference stops there too: continuing would give other numbers under the same name.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return LogisticRegression(random_state=random_state).fit(z, labels)
