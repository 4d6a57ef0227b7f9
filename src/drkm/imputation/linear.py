"""Gaps filled with the linear kernel: where cleaning with ridge weights and putting the values back ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

#: rounds after which values that still move are taken as they are, and how far gaps move, in the mean, in the last one
ROUNDS, TOL = 50, 1e-3
#: numbers of the small matrices that are inverted at once
BLOCK = 1 << 20


@dataclass(frozen=True)
class LinearFill:
    """Components of the linear kernel, weighed by λ/(λ + t), and the gaps that do not change when they clean a row.

    Cleaning takes a centred row x to Px, P = S(S + tI)⁻¹ with the covariance S of the columns. Its values in the gaps
    m are put there and the row is cleaned again; this ends at

        x_m = (I - P_mm)⁻¹ P_mo x_o = -(Q_mm)⁻¹ Q_mo x_o,    Q = (S + tI)⁻¹

    the mean of a Gaussian of covariance S + tI given the entries o that are known. S is that of the filled rows plus
    (Q_mm)⁻¹ for their gaps, without which filled entries would vary too little and draw all others to the mean.

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
        """Return what X, with NaN in its gaps, is filled with; `start` is that of a neighbouring ridge."""
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
        """Return rows with their gaps, which are NaN, filled."""
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
    """Yield rows that have gaps, the columns of as many entries as the worst of them has gaps, and which are gaps."""
    counts = gaps.sum(axis=1)
    # Rows with as many gaps are handled together, so that few small matrices are padded.
    order = np.argsort(counts, kind="stable")[int((counts == 0).sum()) :]
    while len(order):
        size = max(1, BLOCK // int(counts[order[-1]]) ** 2)
        rows, order = order[-size:], order[:-size]
        places = np.argsort(~gaps[rows], axis=1, kind="stable")[:, : int(counts[rows].max())]
        yield rows, places, np.take_along_axis(gaps[rows], places, axis=1)
