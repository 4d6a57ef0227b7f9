from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from drkm import AnomalyDetector


@parametrize_with_checks([AnomalyDetector()])
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)
