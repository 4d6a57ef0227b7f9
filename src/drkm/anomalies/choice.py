"""Parameters of a model whose denoising tells strange samples from others, and the distance that few exceed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.base import clone
from torch import Tensor

from drkm.estimator import ConstrDRKM
from drkm.files.rows import in_memory
from drkm.inference.eigencomponents import EigenComponents
from drkm.inference.subspace import NothingLeft
from drkm.kernels import RBF
from drkm.kernels.bandwidth import resolve_bandwidth
from drkm.problem.shrinkage import Shrinkage
from drkm.strange_data import StrangeDataWarning

#: σ² in units of the median rule
WIDTH = 0.25
#: A sample that is far from all others has an eigenvector of its own, of eigenvalue k(x, x) = 1: what one sample alone
#: supports gets no weight, so that a strange one does not explain itself. A little above 1, or rounding would decide.
SHRINK = Shrinkage(1.01, "firm")
#: parts of the samples that are scored by models of the others
FOLDS = 5
#: of so many samples two are left where the others are judged
FEWEST = 4


def parameters(X: Tensor) -> dict[str, Any]:
    """Return parameters of `ConstrDRKM` for samples among which strange ones are looked for."""
    _check_count(len(X))
    kernel = RBF(WIDTH * resolve_bandwidth("median", X, layer=1))
    rank = EigenComponents(kernel, X.double()).rank(SHRINK)
    return {"n_components": rank, "kernel": kernel, "shrink": SHRINK.parameter}


def held_out_scores(model: ConstrDRKM, X: np.ndarray, random: RandomState) -> np.ndarray:
    """Return `score_samples` of each row of X by a model of like parameters that was fitted to other rows."""
    order, scores = random.permutation(len(X)), np.empty(len(X))
    for fold in range(min(FOLDS, len(X) // 2)):
        held = order[fold :: min(FOLDS, len(X) // 2)]
        others = np.delete(X, held, axis=0)
        fitted = clone(model).set_params(checkpoint=None, callbacks=(), verbose=0)
        if isinstance(fitted.n_components, int) and fitted.n_components > len(others):
            fitted.set_params(n_components=len(others))
        try:
            scores[held] = np.asarray(fitted_quietly(fitted, others).score_samples(X[held]))
        except NothingLeft as error:
            few = f"no two of {len(others)} samples are near each other"
            raise ValueError(f"X: {few}, so that nothing tells strange ones from the others") from error
    return scores


def false_alarm_distance(model: ConstrDRKM, share: float) -> float:
    """Return the distance from its denoised self that this share of a fitted model's samples exceed.

    Each sample is judged by a model of like parameters that was fitted to others: the samples of a fit are nearer to
    their denoised selves than new ones.
    """
    samples = in_memory(model.fitted_.X).double().cpu().numpy()
    _check_count(len(samples), "model")
    return 0.0 - float(np.quantile(held_out_scores(model, samples, np.random.RandomState(0)), share))


def _check_count(n: int, name: str = "X") -> None:
    if n < FEWEST:
        raise ValueError(f"{name}: strange samples are told by others, expected at least {FEWEST} samples, got {n}")


def fitted_quietly(model: ConstrDRKM, X: np.ndarray) -> ConstrDRKM:
    """Fit without the warning that some samples are strange, which is what is looked for here."""
    with warnings.catch_warnings(action="ignore", category=StrangeDataWarning):
        return model.fit(X)
