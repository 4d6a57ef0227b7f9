"""Scoring of candidates on samples that were changed on purpose and denoised."""

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
    """A scored candidate: a kernel, whether it is centred, a shrinkage relative to the number of samples, and losses.

    `rank` is the position of the threshold in the spectrum. `losses` has one number per scored sample, a mean over
    entries; `passed` has the share of the added noise that is left after denoising, also per sample.
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
    """A trial: samples to fit to, and what a judge knows about them."""

    @property
    def samples(self) -> Tensor:
        """Rows to fit to."""


OneTrial = TypeVar("OneTrial", bound=Changed)


class Judge(ABC, Generic[OneTrial]):
    """Scores candidates on trials; subclasses differ in `loss`.

    Attributes
    ----------
    trials : list
    judged, fitted_to, d : int
        Number of scored samples, of samples that models are fitted to, and of columns.
    variance : float
        Variance of the noise, given or assumed, averaged over columns.
    """

    trials: list[OneTrial]
    judged: int
    fitted_to: int
    d: int
    variance: float

    @abstractmethod
    def loss(self, trial: OneTrial, eigen: EigenComponents, shrink: Shrinkage) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss of each scored sample, and the share of the added noise that is left."""

    def path(
        self, kernel: Kernel, center: bool, ranks: Sequence[float], kinds: Sequence[str], most: int
    ) -> list[Judged]:
        """Score shrinkages whose thresholds are the eigenvalues at these ranks.

        They share one eigenproblem per trial; `most` is the maximum number of components.
        """
        judged: list[Judged] = []
        # Thresholds beyond the last eigenvalue are equal to it, and so are the candidates.
        distinct: dict[Shrinkage, Judged] = {}
        for trial in self.trials:
            eigen = EigenComponents(kernel, trial.samples, center=center, rank=most)
            if not judged:
                thresholds = _at(eigen.values.numpy(), ranks) / self.fitted_to
                for rank, threshold in zip(ranks, thresholds, strict=True):
                    for shrink in (Shrinkage(float(threshold), kind) for kind in kinds):
                        one = distinct.setdefault(shrink, self._unjudged(kernel, center, shrink, rank))
                        judged.append(one._replace(rank=rank))
            for one in distinct.values():
                self._add(one, trial, eigen)
        return judged

    def again(self, judged: Judged, most: int) -> Judged:
        """Score a candidate on these trials."""
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
    """Convert a threshold relative to the number of samples to one for n samples."""
    return Shrinkage(shrink.threshold * n, shrink.kind)


def _at(values: np.ndarray, ranks: Sequence[float]) -> np.ndarray:
    """Return eigenvalues at fractional ranks, counted from 1, by geometric interpolation."""
    positive = values[values > 1e-12 * values[0]]
    return np.exp(np.interp(ranks, np.arange(1, len(positive) + 1), np.log(positive)))
