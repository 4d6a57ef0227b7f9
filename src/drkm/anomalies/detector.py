"""The scikit-learn outlier detector `AnomalyDetector`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from drkm import inputs
from drkm.anomalies import choice
from drkm.estimator import ConstrDRKM
from drkm.strange_data import StrangeDataWarning, complaints
from drkm.validation import checks
from drkm.validation.callers import level_of_caller


class AnomalyDetector(OutlierMixin, BaseEstimator):
    """Detect strange samples by the distance to their denoised versions.

    The model is a one-layer `ConstrDRKM` with an RBF kernel of a quarter of the median bandwidth. Components that a
    single sample supports get the weight 0. There is nothing to tune. Distances are Euclidean: put a `StandardScaler`
    before it if columns have different units. Time and memory of a fit grow with the square of the number of
    samples, the time faster from thousands on.

    The threshold of `predict` is meant for new samples. Training samples score higher, so that `fit_predict` calls few
    of them strange: sort them by `score_samples` instead.

    Parameters
    ----------
    false_alarms : float, default=0.05
        Share of ordinary samples that may be called strange. The threshold is this quantile of the scores of samples,
        all or at least 1,000 of them, each scored by a model that has not seen it.
    random_state : int, RandomState instance or None, default=0
        Seed of the partition of samples for these scores.

    Attributes
    ----------
    model_ : ConstrDRKM
    offset_ : float
        Threshold: samples with a lower score are strange.
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
        """Fit the detector to the rows of X, some of which may be strange."""
        if checks.number("false_alarms", self.false_alarms) >= 1:
            raise ValueError(f"false_alarms: expected a number between 0 and 1, got {self.false_alarms}")
        random = checks.random_state(self.random_state)
        with inputs.restored_on_failure(self):
            samples = inputs.checked(self, X, reset=True, dtype=np.float64, ensure_min_samples=choice.FEWEST, copy=True)
            chosen = choice.parameters(torch.from_numpy(samples))
            score = choice.by_components(chosen["kernel"], chosen["n_components"])
            scores = choice.held_out_scores(score, samples, random)
            self.offset_ = float(np.quantile(scores, self.false_alarms))
            self.model_ = choice.fitted_quietly(ConstrDRKM(**chosen), samples)
        names = getattr(self, "feature_names_in_", None)
        for complaint in complaints(
            self.model_.kernels_[0], torch.from_numpy(samples), self.model_.center, names, of_columns_only=True
        ):
            warnings.warn(complaint, StrangeDataWarning, stacklevel=level_of_caller())
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the distance between each row of X and its denoised version: lower is more abnormal."""
        check_is_fitted(self)
        return self.model_.score_samples(inputs.checked(self, X, reset=False, dtype=np.float64))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores minus the threshold: negative is strange."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for strange rows and 1 for others."""
        return np.where(self.decision_function(X) < 0, -1, 1)
