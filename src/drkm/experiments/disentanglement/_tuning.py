"""The task of the experiment on depth: choose a setting on two draws without factors, and judge it on a third."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.preprocessing import StandardScaler

from drkm.experiments import data
from drkm.experiments.disentanglement._models import train_and_encode
from drkm.experiments.disentanglement._tasks import COMMON, COMMON_DRAW, Array, agreement, draw, finite, result_of

#: number of the first training draw for choosing settings; no experiment is judged on these draws
CHOOSING = 20_000


def tuned(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Choose the width of a model by the agreement of its fits to two draws, and score its fit to a third.

    Parameters
    ----------
    parameters : mapping
        `dataset`, `n`, `evaluation`, `widths` to choose from, and the rest of the model as in `train_and_encode`.
    seed : int
        The draw that is judged. The width is chosen on draws 20000 + 2·seed and 20001 + 2·seed.

    Returns
    -------
    dict
        The scores of `disentangle` and `accuracy` on the judged draw; the chosen `width`, and `agreements`, one per
        width.
    """
    images = data.load(parameters["dataset"])
    common, _ = images.sample(COMMON, random_state=COMMON_DRAW)
    choosing = [images.sample(parameters["n"], random_state=CHOOSING + 2 * seed + k)[0] for k in range(2)]
    agreements = [
        agreement(*(train_and_encode({**parameters, "width": width}, train, common, 0).scored for train in choosing))
        for width in parameters["widths"]
    ]
    width = parameters["widths"][int(np.argmax(agreements))]
    problem = draw(parameters["dataset"], seed, parameters["n"], parameters["evaluation"])
    found = train_and_encode({**parameters, "width": width}, problem.train, problem.evaluation, seed)
    return {
        **result_of(found, problem),
        "accuracy": finite(linear_accuracy(found.scored, problem.factors)),
        "width": width,
        "agreements": agreements,
    }


def linear_accuracy(codes: Array, factors: NDArray[np.int64]) -> float:
    """Return the accuracy of a linear classifier on the codes, trained on the first half of rows, tested on the second.

    Linear discriminant analysis of standardised codes, the mean over factors.
    """
    half = len(codes) // 2
    varied = codes[:, codes[:half].std(axis=0) > 0]
    # If no code varies, the best guess is the most frequent value.
    model = LinearDiscriminantAnalysis() if varied.shape[1] else DummyClassifier()
    standard = StandardScaler().fit_transform(varied) if varied.shape[1] else codes
    accuracies = [
        model.fit(standard[:half], values[:half]).score(standard[half:], values[half:])
        for values in factors.T
        if len(np.unique(values[:half])) > 1
    ]
    return float(np.mean(accuracies))
