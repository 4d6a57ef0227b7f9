"""Entries that are masked on purpose and filled in by cleaning, which judge candidates without a noise level.

Noise that is independent between columns cannot be predicted from other columns: of what is put in place of masked
entries the squared error is that of a prediction plus the variance of the noise, which is the same for all candidates.
The prediction does without the entry itself, which cleaning sees. Where the noise is small beside what other columns do
not tell, the candidate that predicts best therefore smooths too much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from drkm.imputation import masked_entries
from drkm.inference.eigencomponents import EigenComponents
from drkm.problem.shrinkage import Shrinkage
from drkm.selection.judge import Judge

#: rounds of cleaning, each of which puts its values into the gaps
ROUNDS = 3
#: the part of the entries that a trial masks, and masked entries of all trials, of which there are at most so many
SHARE, ENTRIES, MOST_TRIALS = 0.1, 2_000, 3


class Gappy(NamedTuple):
    """Samples with means of their columns in place of masked entries, which entries those are, and what they were."""

    samples: Tensor
    masked: Tensor
    before: Tensor


class Masked(Judge[Gappy]):
    """Trials by which candidates are judged.

    Parameters
    ----------
    X : array of shape (n, d)
        Noisy samples.
    noise : array of shape (d,) or float
        Standard deviation of the noise, which bounds the bandwidths that are tried and judges nothing.
    rng : Generator
    """

    def __init__(self, X: np.ndarray, noise: np.ndarray | float, rng: np.random.Generator):
        self.judged, self.d = X.shape
        self.fitted_to = len(X)
        self.variance = float(np.broadcast_to(np.square(noise), self.d).mean())
        before = X - X.mean(axis=0)
        trials = int(np.clip(ENTRIES / (SHARE * X.size), 1, MOST_TRIALS))
        self.trials = [_gappy(before, masked_entries(np.isfinite(before), SHARE, rng.random)) for _ in range(trials)]

    def loss(self, trial: Gappy, eigen: EigenComponents, shrink: Shrinkage) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared errors of what fills masked entries, so that their mean is one over these entries."""
        filled, most = trial.samples, len(eigen.values)
        for done in range(ROUNDS):
            if done:
                eigen = EigenComponents(eigen.kernel, filled, center=eigen.center, rank=most)
            filled = torch.where(trial.masked, eigen.denoise(shrink), filled)
        errors = (filled - trial.before).square().sum(dim=1).numpy()
        return errors * (self.judged / int(trial.masked.sum())), np.full(self.judged, np.nan)


def _gappy(before: np.ndarray, masked: np.ndarray) -> Gappy:
    means = np.nanmean(np.where(masked, np.nan, before), axis=0)
    return Gappy(*map(torch.from_numpy, (np.where(masked, means, before), masked, before)))
