"""Scoring by entries that are masked on purpose and filled in by denoising, which needs no noise level.

Noise that is independent between columns cannot be predicted from other columns. The squared error of a filled-in entry
is therefore that of a prediction plus the variance of the noise, which is the same for all candidates. The prediction
does not use the entry itself, which denoising does. If the noise is small compared with what other columns cannot
predict, the candidate that predicts best therefore smooths too much.
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

#: rounds of denoising, each of which fills the gaps with its values
ROUNDS = 3
#: the share of entries that a trial masks, the number of masked entries in all trials, and the maximum of trials
SHARE, ENTRIES, MOST_TRIALS = 0.1, 2_000, 3


class Gappy(NamedTuple):
    """Samples with column means in place of masked entries, the mask, and the original values."""

    samples: Tensor
    masked: Tensor
    before: Tensor


class Masked(Judge[Gappy]):
    """Scores candidates on masked entries.

    Parameters
    ----------
    X : array of shape (n, d)
        Noisy samples.
    noise : array of shape (d,) or float
        Standard deviation of the noise, which only limits the bandwidths that are tried.
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
        """Return the squared errors of the filled entries, scaled so that their mean is over masked entries."""
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
