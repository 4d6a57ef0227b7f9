"""The linear classifier of explicitness and of the BetaVAE score."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def logistic_regression(z: np.ndarray, labels: np.ndarray, random_state: int | None = None) -> Any:
    """scikit-learn's logistic regression with its defaults, silent when 100 iterations were not enough.

    The reference stops there too: going on would give other numbers under the same name.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return LogisticRegression(random_state=random_state).fit(z, labels)
