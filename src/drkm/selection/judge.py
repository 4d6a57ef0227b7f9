"""What judges candidates: samples that were changed on purpose, and what cleaning makes of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from torch import Tensor

from drkm.inference.eigencomponents import EigenComponents
from drkm.kernels import Kernel
from drkm.problem.shrinkage import Shrinkage


class Judged(NamedTuple):
    """A kernel, whether it is centred, a shrinkage relative to the number of samples, and what it was judged by.

    `rank` is where in the spectrum the threshold is; `losses` has one number per judged sample, a mean over entries,
    and so has `passed`: which part of what was added is still there after cleaning.
    """

    kernel: Kernel
    center: bool
    shrink: Shrinkage
    rank: float
    losses: np.ndarray
    passed: np.ndarray

    @property
    def risk(self) -> float:
        """The estimated mean squared error per entry."""
        return float(self.losses.mean())


class Changed(Protocol):
    """A trial: samples to fit to, and what else a judge knows of them."""

    @property
    def samples(self) -> Tensor:
        """Rows to fit to."""


OneTrial = TypeVar("OneTrial", bound=Changed)


class Judge(ABC, Generic[OneTrial]):
    """Trials by which candidates are judged; `loss` is what sets one judge apart from another.

    Attributes
    ----------
    trials : list
    judged, fitted_to, d : int
        Samples that are judged, samples that models are fitted to, and columns.
    variance : float
        That of the noise, given or presumed, on average over columns.
    """

    trials: list[OneTrial]
    judged: int
    fitted_to: int
    d: int
    variance: float

    @abstractmethod
    def loss(self, trial: OneTrial, eigen: EigenComponents, shrink: Shrinkage) -> tuple[np.ndarray, np.ndarray]:
        """Return for each judged sample its loss, and which part of what was added passes."""

    def path(
        self, kernel: Kernel, center: bool, ranks: Sequence[float], kinds: Sequence[str], most: int
    ) -> list[Judged]:
        """Return shrinkages whose thresholds are the eigenvalues at these ranks, each with its losses.

        One eigenproblem per trial serves them all; `most` is the largest number of components.
        """
        judged: list[Judged] = []
        for trial in self.trials:
            eigen = EigenComponents(kernel, trial.samples, center=center, rank=most)
            if not judged:
                thresholds = _at(eigen.values.numpy(), ranks) / self.fitted_to
                judged = [
                    self._unjudged(kernel, center, Shrinkage(float(threshold), kind), rank)
                    for rank, threshold in zip(ranks, thresholds, strict=True)
                    for kind in kinds
                ]
            for one in judged:
                self._add(one, trial, eigen)
        return judged

    def again(self, judged: Judged, most: int) -> Judged:
        """Return a candidate with its losses on these trials."""
        one = self._unjudged(judged.kernel, judged.center, judged.shrink, judged.rank)
        for trial in self.trials:
            self._add(one, trial, EigenComponents(one.kernel, trial.samples, center=one.center, rank=most))
        return one

    def _unjudged(self, kernel: Kernel, center: bool, shrink: Shrinkage, rank: float) -> Judged:
        return Judged(kernel, center, shrink, rank, *np.zeros((2, self.judged)))

    def _add(self, one: Judged, trial: OneTrial, eigen: EigenComponents) -> None:
        shrink = scaled(one.shrink, self.fitted_to)
        if not one.center and not shrink.rank(eigen.values):
            one.losses[:] = np.inf
            return
        loss, passed = self.loss(trial, eigen, shrink)
        one.losses[:] += loss / len(self.trials)
        one.passed[:] += passed / len(self.trials)


def scaled(shrink: Shrinkage, n: int) -> Shrinkage:
    """Return a shrinkage whose threshold was relative to the number of samples as one for n samples."""
    return Shrinkage(shrink.threshold * n, shrink.kind)


def _at(values: np.ndarray, ranks: Sequence[float]) -> np.ndarray:
    """Return eigenvalues at ranks, counted from 1, between which they fall geometrically."""
    positive = values[values > 1e-12 * values[0]]
    return np.exp(np.interp(ranks, np.arange(1, len(positive) + 1), np.log(positive)))
