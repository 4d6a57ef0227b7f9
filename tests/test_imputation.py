from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from drkm import Imputer


@parametrize_with_checks([Imputer(), Imputer(add_indicator=True, keep_empty_features=True, missing_values=-1.0)])
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)
