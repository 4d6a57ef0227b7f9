"""Imputation with the linear kernel: the limit of repeated denoising with ridge weights, in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

#: maximum number of rounds, and the mean change of gaps at which they stop
ROUNDS, TOL = 50, 1e-3
#: maximum of numbers in the small matrices that are inverted together
BLOCK = 1 << 20


@dataclass(frozen=True)
class LinearFill:
    """Components of the linear kernel with weights λ/(λ + t), and the fixed point of denoising for gaps.

    Denoising maps a centred row x to Px, P = S(S + tI)⁻¹ with the covariance S of the columns. If its values are put
    into the gaps m and the row is denoised again, this converges to

        x_m = (I - P_mm)⁻¹ P_mo x_o = -(Q_mm)⁻¹ Q_mo x_o,    Q = (S + tI)⁻¹

    the mean of a Gaussian of covariance S + tI given the known entries o. S is the covariance of the filled rows plus
    (Q_mm)⁻¹ for their gaps, without which filled entries would vary too little and pull all others towards the mean.

    Attributes
    ----------
    mean : array of shape (d,)
    covariance : array of shape (d, d)
        S.
    ridge : float
        t.
    """

    mean: np.ndarray
    covariance: np.ndarray
    ridge: float

    @classmethod
    def of(cls, X: np.ndarray, ridge: float, start: LinearFill | None = None) -> LinearFill:
        """Learn the fill from X, with NaN in its gaps; `start` is the fill of a neighbouring ridge."""
        n, d = X.shape
        found = start or cls(np.zeros(d), np.eye(d), ridge)
        last = None
        for _ in range(ROUNDS):
            found = cls(found.mean, found.covariance, ridge)
            filled, spread = found._filled(X)
            mean = filled.mean(axis=0)
            centred = filled - mean
            found = cls(mean, (centred.T @ centred + spread) / n, ridge)
            if last is not None and np.abs(filled - last).mean() <= TOL * np.isnan(X).mean():
                break
            last = filled
        return found

    def fill(self, X: np.ndarray) -> np.ndarray:
        """Return rows with their gaps (NaN) filled."""
        return self._filled(X)[0]

    def _filled(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return filled rows, and the sum over rows of the covariance of their gaps."""
        d = len(self.mean)
        precision = np.linalg.inv(self.covariance + self.ridge * np.eye(d))
        filled, spread = X.copy(), np.zeros(d * d)
        for rows, places, empty in _blocks(np.isnan(X)):
            known = np.nan_to_num(X[rows] - self.mean)
            inside = empty[:, :, None] & empty[:, None, :]
            Q = precision[places[:, :, None], places[:, None, :]]
            inverse = np.linalg.inv(np.where(inside, Q, np.eye(places.shape[1])))
            pull = np.where(empty, np.take_along_axis(known @ precision, places, axis=1), 0.0)
            values = self.mean[places] - (inverse @ pull[:, :, None])[:, :, 0]
            each, slots = np.nonzero(empty)
            filled[rows[each], places[each, slots]] = values[each, slots]
            pairs = (d * places[:, :, None] + places[:, None, :])[inside]
            spread += np.bincount(pairs, inverse[inside], minlength=d * d)
        return filled, spread.reshape(d, d)


def _blocks(gaps: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows with gaps, padded column indices of their gaps, and a mask of the true gaps."""
    counts = gaps.sum(axis=1)
    # Rows with the same number of gaps are processed together, to reduce padding.
    order = np.argsort(counts, kind="stable")[int((counts == 0).sum()) :]
    while len(order):
        size = max(1, BLOCK // int(counts[order[-1]]) ** 2)
        rows, order = order[-size:], order[:-size]
        places = np.argsort(~gaps[rows], axis=1, kind="stable")[:, : int(counts[rows].max())]
        yield rows, places, np.take_along_axis(gaps[rows], places, axis=1)
