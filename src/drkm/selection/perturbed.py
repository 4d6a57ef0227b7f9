"""The risk of denoising samples, estimated by denoising them again with a little more noise.

From samples Y = x + noise make Y + αω and Y - ω/α, with ω a second draw of the noise. For Gaussian noise these two are
independent, so that a model that is fitted to the first and denoises it can be scored by the second:

    E‖f(Y + αω) - x‖² = E‖f(Y + αω) - Y‖² + 2/α · E⟨f(Y + αω), ω⟩ - E‖ω‖²

which is the risk at (1 + α²) times the variance of the noise, including fit and choice of the eigenvectors. The draws
come in pairs ±ω, which removes most of the randomness of the middle term, and are the same for all candidates. For new
points the model is fitted to other samples, without added noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drkm.inference.eigencomponents import EigenComponents
from drkm.problem.shrinkage import Shrinkage
from drkm.selection.judge import Judge, Judged

#: α: the standard deviation of the added noise, relative to that of the noise in the samples
ALPHA = 0.25
#: the share of the samples that are treated as new points
HELD = 0.25
#: number of entries in the draws of all samples together, and the maximum number of pairs of draws
ENTRIES, MOST_PAIRS = 20_000, 4


@dataclass(frozen=True)
class Trial:
    """Samples to fit to, points to denoise (by default the samples), their values before, and the added noise."""

    samples: Tensor
    points: Tensor | None
    before: Tensor
    omega: Tensor


class Perturbed(Judge[Trial]):
    """Scores candidates by denoising perturbed samples.

    Parameters
    ----------
    X : array of shape (n, d)
        Noisy samples.
    noise : array of shape (d,) or float
        Standard deviation of the noise.
    for_ : {"these", "new"}
        Whether to denoise the samples themselves, or new ones.
    rng : Generator
    """

    def __init__(self, X: np.ndarray, noise: np.ndarray | float, for_: str, rng: np.random.Generator):
        held = _held(len(X), rng) if for_ == "new" else np.ones(len(X), bool)
        self.judged, self.d = int(held.sum()), X.shape[1]
        self.variance = float(np.broadcast_to(np.square(noise), self.d).mean())
        pairs = int(np.clip(ENTRIES // (self.judged * self.d), 1, MOST_PAIRS))
        Y = X - X.mean(axis=0)
        omegas = noise * rng.standard_normal((pairs, self.judged, self.d))
        # Expected norms: their randomness is the same for all candidates, but would be an error in the expected risk.
        omegas *= np.sqrt(self.variance / np.square(omegas).mean(axis=(1, 2), keepdims=True))
        rows = np.concatenate([Y, *omegas])
        if len(rows) < self.d:
            # All points that denoising visits are in the span of these.
            rows = rows @ np.linalg.qr(rows.T)[0]
        before, *parts = np.split(rows, np.cumsum([len(Y), *[self.judged] * (pairs - 1)]))
        train = None if for_ == "these" else torch.from_numpy(np.ascontiguousarray(before[~held]))
        self.trials = [
            _trial(train, torch.from_numpy(before[held]), torch.from_numpy(sign * omega))
            for omega in parts
            for sign in (1.0, -1.0)
        ]
        self.fitted_to = len(self.trials[0].samples)

    def consistent_noise(self, judged: Judged) -> float:
        """Return the noise level that is consistent with what this denoiser does.

        The best denoiser, the posterior mean, has the error covariance σ²J, with J its Jacobian, so that E‖y - f(y)‖² =
        σ²(d - tr J). If the assumed noise was too large, the chosen denoiser smooths too much, and the level that its
        residuals imply is closer to the truth.

        Here y has the variance (1 + α²)σ² in place of σ². The share of the added noise that denoising passes on is an
        estimate of tr J/d, and the risk that of E‖f(y) - x‖²/d = E‖y - f(y)‖²/d - (1 + α²)σ²(1 - 2 tr J/d).
        """
        more, passed = (1 + ALPHA**2) * self.variance, float(judged.passed.mean())
        residual = judged.risk + more * (1 - 2 * passed)
        level = residual / max(1 - passed, 1e-3) - ALPHA**2 * self.variance
        return max(level, 0.0) ** 0.5

    def loss(self, trial: Trial, eigen: EigenComponents, shrink: Shrinkage) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimated squared errors of the scored samples, and the share of the added noise that is left."""
        cleaned = eigen.denoise(shrink, trial.points)
        change = (cleaned - trial.before).square().sum(dim=1)
        followed = (cleaned * trial.omega).sum(dim=1).numpy() / self.d
        return change.numpy() / self.d + 2 / ALPHA * followed - self.variance, followed / (ALPHA * self.variance)


def _held(n: int, rng: np.random.Generator) -> np.ndarray:
    held = np.zeros(n, bool)
    held[rng.permutation(n)[: max(1, round(HELD * n))]] = True
    return held


def _trial(train: Tensor | None, before: Tensor, omega: Tensor) -> Trial:
    moved = before + ALPHA * omega
    return Trial(moved, None, before, omega) if train is None else Trial(train, moved, before, omega)
