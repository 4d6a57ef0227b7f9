"""The scikit-learn transformer `Imputer`."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from drkm import inputs
from drkm.imputation import choice
from drkm.validation import checks


class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing values by denoising with weighted kernel PCA components.

    Columns are standardised internally. Gaps start at the means of their columns. Each row is denoised, its gaps take
    the denoised values, and this is repeated until they hardly change, first with the linear kernel and then with RBF
    and Matérn kernels. Widths, weights of components and the share of each kernel in the result are those that best
    fill a tenth of the known entries, masked for this purpose. New rows are filled with the samples of the fit as
    reference.

    Parameters
    ----------
    missing_values : float, default=nan
        Placeholder for missing values.
    max_samples : int, default=1000
        Number of samples, drawn from those of the fit, whose components fill all gaps. The time grows with its cube.
    add_indicator : bool, default=False
        Add an indicator column for each feature that had gaps in `fit`.
    keep_empty_features : bool, default=False
        Keep features that had no number in `fit`, with 0 in their gaps; otherwise they are dropped.
    random_state : int, RandomState instance or None, default=0
        Seed for masking entries and drawing samples.

    Attributes
    ----------
    filling_ : Filling
        What was chosen: `linear` with its ridge, and `members` with their kernels, weights of components and shares.
    statistics_ : array of shape (n_features,)
        Means of the features, at which gaps start; NaN for features without a number.
    indicator_ : MissingIndicator or None
    n_features_in_, feature_names_in_
        Number and names of the features seen by `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from drkm import Imputer
    >>> X = load_iris().data
    >>> X[::7, 2] = np.nan
    >>> bool(np.isnan(Imputer().fit_transform(X)).any())
    False
    """

    def __init__(
        self,
        *,
        missing_values: float = np.nan,
        max_samples: int = choice.MAX_SAMPLES,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        random_state: Any = 0,
    ):
        self.missing_values = missing_values
        self.max_samples = max_samples
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Imputer:
        """Learn how to fill gaps from the rows of X, in which any entry may be missing."""
        for name in ("add_indicator", "keep_empty_features"):
            checks.boolean(name, getattr(self, name))
        checks.integer("max_samples", self.max_samples, 2)
        if not self._gaps_are_nan:
            checks.real("missing_values", self.missing_values)
        random = checks.random_state(self.random_state)
        with inputs.restored_on_failure(self):
            self._learn(self._read(X, reset=True), random)
        return self

    def _learn(self, values: np.ndarray, random: np.random.RandomState) -> None:
        empty = np.isnan(values).all(axis=0)
        if empty.all():
            raise ValueError(f"X: expected at least one number, got {values.size} gaps")
        self.filling_ = choice.filling_of(values[:, ~empty], max_samples=self.max_samples, random_state=random)
        self.statistics_ = np.full(len(empty), np.nan)
        self.statistics_[~empty] = self.filling_.offset
        self.indicator_ = None
        if self.add_indicator:
            # The import takes half a second, which loading a model should not need.
            from sklearn.impute import MissingIndicator

            self.indicator_ = MissingIndicator(error_on_new=False).fit(values)

    def transform(self, X: Any) -> np.ndarray:
        """Fill the gaps of the rows of X; all other entries are unchanged."""
        check_is_fitted(self)
        values = self._read(X, reset=False)
        empty = np.isnan(self.statistics_)
        filled = self.filling_.fill(values[:, ~empty])
        if self.keep_empty_features and empty.any():
            whole = np.where(np.isnan(values), 0.0, values)
            whole[:, ~empty] = filled
            filled = whole
        return filled if self.indicator_ is None else np.hstack([filled, self.indicator_.transform(values)])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`."""
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        kept = names if self.keep_empty_features else names[~np.isnan(self.statistics_)]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._gaps_are_nan
        return tags

    @property
    def _gaps_are_nan(self) -> bool:
        return isinstance(self.missing_values, Real) and math.isnan(self.missing_values)

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        """Return X as float64 with NaN in its gaps."""
        finite = "allow-nan" if self._gaps_are_nan else True
        kinds = (np.float64, np.float32, np.float16)
        values = inputs.checked(self, X, reset=reset, dtype=kinds, ensure_all_finite=finite, copy=True)
        if not self._gaps_are_nan:
            # -99.9 is another number in float32 than in float64; what a small type cannot hold is infinite, so no gap.
            with np.errstate(over="ignore"):
                values[values == values.dtype.type(self.missing_values)] = np.nan
        return values.astype(np.float64, copy=False)
