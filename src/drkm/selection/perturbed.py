"""The risk of cleaning samples, estimated by cleaning them again with a little more noise.

Of samples Y = x + noise make Y + αω and Y - ω/α, ω a second draw of the noise. For Gaussian noise these two are
independent, so that a model that is fitted to the first and cleans it can be judged by the second:

    E‖f(Y + αω) - x‖² = E‖f(Y + αω) - Y‖² + 2/α · E⟨f(Y + αω), ω⟩ - E‖ω‖²

which is the risk with (1 + α²) times the variance of the noise, fit and choice of the eigenvectors included. The draws
come in pairs ±ω, which takes most of the chance out of the middle term, and are the same for all candidates. For new
points the model is fitted to other samples, as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drkm.inference.eigencomponents import EigenComponents
from drkm.problem.shrinkage import Shrinkage
from drkm.selection.judge import Judge, Judged

#: α: the extra noise relative to the noise there is
ALPHA = 0.25
#: the part of the samples that stand for new points
HELD = 0.25
#: entries that the draws of all samples have together, in pairs of which there are at most so many
ENTRIES, MOST_PAIRS = 20_000, 4


@dataclass(frozen=True)
class Trial:
    """Samples to fit to, points to clean (the samples where there are none), what they were, and what was added."""

    samples: Tensor
    points: Tensor | None
    before: Tensor
    omega: Tensor


class Perturbed(Judge[Trial]):
    """Trials by which candidates are judged.

    Parameters
    ----------
    X : array of shape (n, d)
        Noisy samples.
    noise : array of shape (d,) or float
        Standard deviation of the noise.
    for_ : {"these", "new"}
        Whether the samples themselves are cleaned, or others.
    rng : Generator
    """

    def __init__(self, X: np.ndarray, noise: np.ndarray | float, for_: str, rng: np.random.Generator):
        held = _held(len(X), rng) if for_ == "new" else np.ones(len(X), bool)
        self.judged, self.d = int(held.sum()), X.shape[1]
        self.variance = float(np.broadcast_to(np.square(noise), self.d).mean())
        pairs = int(np.clip(ENTRIES // (self.judged * self.d), 1, MOST_PAIRS))
        Y = X - X.mean(axis=0)
        omegas = noise * rng.standard_normal((pairs, self.judged, self.d))
        # Norms as they are expected: their chance is the same for all candidates, and an error of what is expected.
        omegas *= np.sqrt(self.variance / np.square(omegas).mean(axis=(1, 2), keepdims=True))
        rows = np.concatenate([Y, *omegas])
        if len(rows) < self.d:
            # All points that cleaning meets are in the span of these.
            rows = rows @ np.linalg.qr(rows.T)[0]
        before, *parts = np.split(torch.from_numpy(rows).numpy(), np.cumsum([len(Y), *[self.judged] * (pairs - 1)]))
        train = None if for_ == "these" else torch.from_numpy(np.ascontiguousarray(before[~held]))
        self.trials = [
            _trial(train, torch.from_numpy(before[held]), torch.from_numpy(sign * omega))
            for omega in parts
            for sign in (1.0, -1.0)
        ]
        self.fitted_to = len(self.trials[0].samples)

    def consistent_noise(self, judged: Judged) -> float:
        """Return the noise level at which the best denoiser would do what this one does.

        The best one, the posterior mean, has the error covariance σ²J, J its Jacobian, and so leaves of the noise the
        part that passes: E‖y - f(y)‖² = σ²(d - tr J). If the noise was presumed too large, what was chosen smooths
        more than it should, and the level that its residuals tell is nearer to the truth.
        """
        more, passed = (1 + ALPHA**2) * self.variance, float(judged.passed.mean())
        residual = judged.risk + more * (1 - 2 * passed)
        level = residual / max(1 - passed, 1e-3) - ALPHA**2 * self.variance
        return max(level, 0.0) ** 0.5

    def loss(self, trial: Trial, eigen: EigenComponents, shrink: Shrinkage) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimated squared errors of the judged samples, and which part of what was added passes."""
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
