"""The choice of imputation models, by entries that are masked on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState

from drkm.imputation.filling import HOW, Filling, Member, fill_gaps
from drkm.imputation.linear import LinearFill
from drkm.inference.eigencomponents import EigenComponents
from drkm.inputs.preparation import standard_units
from drkm.kernels import RBF, Matern
from drkm.kernels.bandwidth import resolve_bandwidth
from drkm.problem.shrinkage import Shrinkage
from drkm.validation import checks

#: t of the linear kernel, for columns of variance 1
RIDGES = (0.3, 0.1, 0.03, 0.01, 0.001)
#: t if too few entries are known to choose it
CAUTIOUS = 0.1
#: kernels by their bandwidth σ² in units of the median rule, and thresholds of firm weights in units of the trace
KERNELS = (RBF(0.5), RBF(1.0), RBF(3.0), Matern(1.5, 1.0), Matern(1.5, 4.0))
THRESHOLDS = (0.0003, 0.001, 0.003, 0.01)
#: rows and masked entries that suffice to choose, maximum number of masks, and the share of entries in a mask
ROWS, ENTRIES, MASKS, SHARE = 400, 500, 5, 0.1
#: with fewer known entries than this, nothing is chosen
FEWEST = 40
#: with more columns than this, no covariance is formed
LINEAR_COLUMNS = 1000
#: members with a smaller weight are dropped
LEAST_WEIGHT = 0.02
MAX_SAMPLES = 1000


def learn(X: np.ndarray, max_samples: int, random: RandomState) -> Filling:
    """Learn from X, which has NaN in its gaps, how to fill gaps of such rows; every column must have a number."""
    offset, scale = standard_units(X, np.nanmean, np.nanstd)
    plain = Filling(offset, scale)
    Z = (X - offset) / scale
    chosen = _chosen(_drawn(Z, ROWS, random), random)
    if chosen is None:
        return plain
    ridge, members = chosen
    linear = None if ridge is None else _path(Z, ridge)
    reference = replace(plain, linear=linear).start(_drawn(Z, max_samples, random))
    if not members:
        return replace(plain, linear=linear)
    unit = _median_bandwidth(reference)
    resolved = tuple(_resolved(member, len(reference), unit) for member in members)
    return replace(plain, linear=linear, reference=reference, members=resolved)


def filling_of(X: np.ndarray, how: str = "fill", max_samples: int = MAX_SAMPLES, random_state: Any = 0) -> Filling:
    """Learn how to fill gaps: by denoising ("fill"), or with the "mean" or "median" of the column.

    Parameters
    ----------
    X : array of shape (n, d)
        Data with NaN in the gaps; every column must have a number.
    how : {"fill", "mean", "median"}
    max_samples, random_state
        As in `Imputer`.
    """
    if how not in HOW:
        raise ValueError(f"impute: unknown way {how!r}, allowed are {', '.join(HOW)}")
    if how == "fill":
        return learn(X, max_samples, checks.random_state(random_state))
    middle = np.nanmean(X, axis=0) if how == "mean" else np.nanmedian(X, axis=0)
    return Filling(middle, np.ones_like(middle), how=how)


def _path(Z: np.ndarray, ridge: float) -> LinearFill:
    """Return the linear fill for one ridge, reached through the larger ones."""
    found = None
    for larger in (value for value in RIDGES if value >= ridge):
        found = LinearFill.of(Z, larger, found)
    assert found is not None
    return found


def _drawn(Z: np.ndarray, most: int, random: RandomState) -> np.ndarray:
    """Return at most `most` rows that have a number."""
    some = Z[~np.isnan(Z).all(axis=1)]
    return some if len(some) <= most else some[np.sort(random.choice(len(some), most, replace=False))]


def _chosen(Z: np.ndarray, random: RandomState) -> tuple[float | None, tuple[Member, ...]] | None:
    """Return the ridge and the members of the best blend; bandwidths of kernels are relative to the median rule."""
    wide = Z.shape[1] > LINEAR_COLUMNS
    known = int((~np.isnan(Z)).sum())
    if known < FEWEST or Z.shape[1] < 2:
        return None if wide else (CAUTIOUS, ())
    masks = min(MASKS, 1 + int(ENTRIES / (SHARE * known)))
    trials = [_Trial(Z, random) for _ in range(masks)]
    if not any(len(trial.truth) for trial in trials):
        # Rows with only one number have none to mask.
        return None if wide else (CAUTIOUS, ())
    ridge = None
    if not wide:
        paths = [trial.linear_path() for trial in trials]
        errors = [sum(path[i][1] for path in paths) for i in range(len(RIDGES))]
        best = int(np.argmin(errors))
        ridge = RIDGES[best]
        for trial, path in zip(trials, paths, strict=True):
            trial.begin = path[best][0]
    candidates = list(_candidates())
    columns = [np.concatenate([trial.begun() for trial in trials])]
    columns += [np.concatenate(parts) for parts in zip(*(trial.filled(candidates) for trial in trials), strict=True)]
    truth = np.concatenate([trial.truth for trial in trials])
    weights = _blend(np.stack(columns, axis=1), truth)
    members = tuple(replace(one, weight=float(w)) for one, w in zip(candidates, weights[1:], strict=True) if w > 0)
    return ridge, members


def masked_entries(known: np.ndarray, share: float, uniform: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """Return a mask of about this share of the known entries; `uniform` draws numbers between 0 and 1."""
    masked = known & (uniform(known.shape) < share)
    # A row or column that would lose all its numbers is not masked.
    masked[(known & ~masked).sum(axis=1) == 0] = False
    masked[:, (known & ~masked).sum(axis=0) < 2] = False
    return masked


class _Trial:
    """Rows with some known entries masked, and the values that candidates give to these."""

    def __init__(self, Z: np.ndarray, random: RandomState):
        known = ~np.isnan(Z)
        masked = masked_entries(known, SHARE, random.random_sample)
        if masked.sum() < SHARE * known.sum() / 2:
            # If the caller removed entries with the same seed, those to mask are mostly gone: draw other numbers.
            masked = masked_entries(known, SHARE, random.random_sample)
        self.Z, self.masked, self.truth = np.where(masked, np.nan, Z), masked, Z[masked]
        self.begin = np.nan_to_num(self.Z)

    def linear_path(self) -> list[tuple[np.ndarray, float]]:
        """Return the filled rows and the squared error of each ridge."""
        found, path = None, []
        for ridge in RIDGES:
            found = LinearFill.of(self.Z, ridge, found)
            filled = found.fill(self.Z)
            path.append((filled, float(np.square(filled[self.masked] - self.truth).sum())))
        return path

    def begun(self) -> np.ndarray:
        return self.begin[self.masked]

    def filled(self, candidates: list[Member]) -> Iterator[np.ndarray]:
        """Yield the values that each candidate gives to the masked entries."""
        gaps, X = np.isnan(self.Z), torch.from_numpy(self.begin)
        unit = _median_bandwidth(self.begin)
        for _, group in groupby(candidates, key=lambda member: member.kernel):
            resolved = [_resolved(member, len(X), unit) for member in group]
            eigen = EigenComponents(resolved[0].kernel, X)
            for member in resolved:
                yield fill_gaps(eigen.components(member.shrink), self.begin, gaps)[self.masked]


def _candidates() -> Iterator[Member]:
    for kernel in KERNELS:
        for threshold in THRESHOLDS:
            yield Member(kernel, Shrinkage(threshold, "firm"), 0.0)


def _median_bandwidth(reference: np.ndarray) -> float:
    return resolve_bandwidth("median", torch.from_numpy(reference), layer=1)


def _resolved(member: Member, n: int, unit: float) -> Member:
    """Resolve a candidate for n samples: σ² from its multiple of the unit, t from its share of the trace of K_1."""
    kernel = replace(member.kernel, sigma2=member.kernel.bandwidth * unit)  # type: ignore[type-var]
    return replace(member, kernel=kernel, shrink=replace(member.shrink, threshold=n * member.shrink.threshold))


def _blend(columns: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return nonnegative weights that sum to 1, such that the weighted sum of columns is closest to the truth."""
    from scipy.optimize import nnls

    # One more equation, with a dominating weight, makes the sum 1.
    heavy = 1e3 * np.sqrt(len(truth)) * (1 + np.abs(truth).max(initial=0.0))
    weights = nnls(np.vstack([columns, np.full(columns.shape[1], heavy)]), np.append(truth, heavy))[0]
    weights[weights < LEAST_WEIGHT * weights.sum()] = 0.0
    return weights / weights.sum()
