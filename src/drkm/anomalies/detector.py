"""The detector: scikit-learn's conventions for outliers around a model that denoises."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from drkm import inputs
from drkm.anomalies import choice
from drkm.estimator import ConstrDRKM
from drkm.validation import checks


class AnomalyDetector(OutlierMixin, BaseEstimator):
    """Tells strange samples by the distance to their denoised selves.

    The model is a `ConstrDRKM` of one layer with an RBF kernel of a quarter of the median bandwidth, whose components
    are weighed so that what one sample alone supports counts for nothing. There is nothing to choose. Distances are
    Euclidean: put a `StandardScaler` before it where columns have different units.

    Parameters
    ----------
    false_alarms : float, default=0.05
        Share of ordinary samples that may be called strange. The threshold is that quantile of the scores of the
        samples, each by a model that has not seen it.
    random_state : int, RandomState instance or None, default=0
        How samples are shared out for that.

    Attributes
    ----------
    model_ : ConstrDRKM
    offset_ : float
        The threshold: samples whose score is lower are strange.
    n_features_in_, feature_names_in_
        Number and names of the features seen by `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from drkm import AnomalyDetector
    >>> X = load_iris().data
    >>> detector = AnomalyDetector().fit(X)
    >>> detector.predict(np.array([[5.8, 3.0, 4.4, 1.4], [5.8, 3.0, 1.4, 2.4]]))
    array([ 1, -1])
    """

    def __init__(self, *, false_alarms: float = 0.05, random_state: Any = 0):
        self.false_alarms = false_alarms
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> AnomalyDetector:
        """Learn from the rows of X, of which some may be strange, what is ordinary."""
        if checks.number("false_alarms", self.false_alarms) >= 1:
            raise ValueError(f"false_alarms: expected a number between 0 and 1, got {self.false_alarms}")
        random = checks.random_state(self.random_state)
        with inputs.restored_on_failure(self):
            samples = inputs.checked(self, X, reset=True, dtype=np.float64, ensure_min_samples=choice.FEWEST, copy=True)
            model = ConstrDRKM(**choice.parameters(torch.from_numpy(samples)))
            scores = choice.held_out_scores(model, samples, random)
            self.offset_ = float(np.quantile(scores, self.false_alarms))
            self.model_ = choice.fitted_quietly(model, samples)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the distance between each row of X and its denoised self: lower is more abnormal."""
        check_is_fitted(self)
        return self.model_.score_samples(inputs.checked(self, X, reset=False, dtype=np.float64))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores above the threshold: negative is strange."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for strange rows and 1 for others."""
        return np.where(self.decision_function(X) < 0, -1, 1)
