"""Parameters of a model for anomaly detection, and the threshold for false alarms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.base import clone
from torch import Tensor

from drkm.arrays.lapack import count_above
from drkm.estimator import ConstrDRKM
from drkm.files.rows import in_memory
from drkm.inference.eigencomponents import EigenComponents
from drkm.inference.inference import SMALL_BATCH
from drkm.inference.preimage.search import MAX_ITER, TOL
from drkm.inference.subspace import NothingLeft
from drkm.kernels import RBF, Kernel
from drkm.kernels.bandwidth import resolve_bandwidth
from drkm.machine import memory
from drkm.machine.threads import one_thread
from drkm.problem.shrinkage import Shrinkage
from drkm.strange_data import StrangeDataWarning
from drkm.training.parameters import device, dtype

#: σ² in units of the median rule
WIDTH = 0.25
#: A sample that is far from all others is a block of K of its own, with the eigenvalue k(x, x) = 1. Components that
#: one sample alone supports get the weight 0, so that a strange sample does not explain itself; two strange samples
#: that are alike, with the eigenvalue 1 + k(x, y), do explain each other. The threshold is slightly above 1, because at
#: 1 rounding would decide.
SHRINK = Shrinkage(1.01, "firm")
#: number of parts of the samples, each of which is scored by a model of the others
FOLDS = 5
#: number of scores that suffice for a quantile, so that of many samples not all parts are scored: the share of false
#: alarms is then known to 0.7 %
ENOUGH = 1000
#: least number of samples: at least two must remain to score the others
FEWEST = 4
#: n×n matrices of float64 whose memory suffices for all of a fit of n samples, also with a component for one in twenty
MATRICES = 8


def parameters(X: Tensor) -> dict[str, Any]:
    """Return parameters of `ConstrDRKM` for finding strange samples in X."""
    n = len(X)
    _check_count(n)
    if not memory.fits(8 * n**2, X.device):
        most = math.isqrt(memory.available(X.device) // (8 * MATRICES))
        instead = f"fit a random part of the samples, such as {most} of them"
        memory.require(8 * n**2, X.device, f"X: finding the strange ones of {n} samples", instead)
    kernel = RBF(WIDTH * resolve_bandwidth("median", X, layer=1))
    K = kernel(X.double(), X.double()).numpy(force=True)
    return {
        "n_components": max(1, count_above(K, SHRINK.threshold)),
        "kernel": kernel,
        "shrink": SHRINK.parameter,
    }


#: a function that scores new rows by a model of others: (others, rows) -> scores
Scorer = Callable[[np.ndarray, np.ndarray], np.ndarray]


def held_out_scores(score: Scorer, X: np.ndarray, random: RandomState) -> np.ndarray:
    """Score rows of X, all or enough of them, each by a model of other rows."""
    order, folds = random.permutation(len(X)), min(FOLDS, len(X) // 2)
    scores: list[float] = []
    for fold in range(folds):
        held = order[fold::folds]
        others = np.delete(X, held, axis=0)
        try:
            scores.extend(score(others, X[held]))
        except NothingLeft as error:
            few = f"no two of {len(others)} samples are near each other"
            raise ValueError(f"X: {few}, so that nothing distinguishes strange ones from the others") from error
        if len(scores) >= ENOUGH:
            break
    return np.array(scores)


def by_components(kernel: Kernel, n_components: int) -> Scorer:
    """Return the scorer by models with the parameters of `parameters`, whose components alone are computed."""

    def score(others: np.ndarray, rows: np.ndarray) -> np.ndarray:
        where = device("auto", None, len(others))
        X, points = (torch.from_numpy(part).to(where, dtype("auto", where)) for part in (others, rows))
        eigen = EigenComponents(kernel, X, rank=n_components)
        with one_thread(len(X) * len(points) < SMALL_BATCH):
            cleaned = eigen.denoise(SHRINK, points, tol=TOL, max_iter=MAX_ITER)
        return -(cleaned - points).norm(dim=1).numpy(force=True)

    return score


def by_model(model: ConstrDRKM) -> Scorer:
    """Return the scorer by models with the parameters of any model."""

    def score(others: np.ndarray, rows: np.ndarray) -> np.ndarray:
        fitted = clone(model).set_params(checkpoint=None, callbacks=(), verbose=0)
        if np.size(model.n_components) == 1 and np.max(model.n_components) > len(others):
            fitted.set_params(n_components=len(others))
        return np.asarray(fitted_quietly(fitted, others).score_samples(rows))

    return score


def false_alarm_distance(model: ConstrDRKM, share: float) -> float:
    """Return the distance to the denoised version that this share of a fitted model's samples exceeds.

    Each sample is scored by a model with the same parameters that was fitted to others, because training samples are
    closer to their denoised versions than new ones.
    """
    samples = in_memory(model.fitted_.X).double().cpu().numpy()
    _check_count(len(samples), "model")
    return 0.0 - float(np.quantile(held_out_scores(by_model(model), samples, np.random.RandomState(0)), share))


def _check_count(n: int, name: str = "X") -> None:
    if n < FEWEST:
        raise ValueError(
            f"{name}: strange samples are found by comparison with others, expected at least {FEWEST} samples, got {n}"
        )


def fitted_quietly(model: ConstrDRKM, X: np.ndarray) -> ConstrDRKM:
    """Fit without the warning about strange samples, which are expected here."""
    with warnings.catch_warnings(action="ignore", category=StrangeDataWarning):
        return model.fit(X)
