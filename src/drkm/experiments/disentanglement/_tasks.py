"""The tasks of the disentanglement experiments: one model on one draw of images, with its scores and chance levels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from scipy.stats import kurtosis, rankdata

from drkm import metrics
from drkm.experiments import data
from drkm.experiments.disentanglement._models import (
    Codes,
    Images,
    default_model,
    encode,
    rotation,
    rows_of,
    train_and_encode,
)
from drkm.experiments.disentanglement.candidates import AXES
from drkm.experiments.quiet import quiet

Array = NDArray[np.float64]

#: metric → options, and number of shuffles for its chance level: fewer for SAP, which trains classifiers. SAP takes
#: standardised codes because its support vector machines depend on scale: entries of orthonormal codes have size
#: n^-1/2, those of a β-VAE size 1.
METRICS: dict[str, tuple[dict[str, Any], int]] = {
    "irs": ({}, 20),
    "mig": ({}, 20),
    "sap": ({"standardize": True}, 5),
}

#: number of images on which fits to different draws are compared, and the draw that they come from
COMMON, COMMON_DRAW = 500, 10_000


@dataclass(frozen=True)
class TrainingDraw:
    """One training draw: images to train on, and others with their factors to score."""

    train: Images
    evaluation: Images
    factors: NDArray[np.int64]


def draw(dataset: str, number: int, n_train: int = 800, n_evaluation: int = 4000) -> TrainingDraw:
    """Draw training and evaluation images without replacement, so that no image is in both."""
    images, factors = data.load(dataset).sample(n_train + n_evaluation, random_state=number)
    return TrainingDraw(images[:n_train], images[n_train:], factors[n_train:])


def drawn_from_all(dataset: str, number: int, n: int) -> tuple[Images, NDArray[np.int64]]:
    """Draw evaluation images with their factors from all images, training images included."""
    return data.load(dataset).sample(n, random_state=np.random.default_rng([number, 1]))


def scores_of(codes: Array, factors: NDArray[np.int64], names: Sequence[str] = tuple(METRICS)) -> dict[str, Any]:
    """Return each score and its chance level; None where a metric is undefined for the codes."""
    out: dict[str, Any] = {}
    for name in names:
        options, shuffles = METRICS[name]
        out[name] = finite(getattr(metrics, name)(codes, factors, **options))
        out[f"{name}_chance"] = finite(metrics.chance(name, codes, factors, repeats=shuffles, **options))
    return out


def finite(value: Any) -> float | None:
    """Return a number that JSON can hold: None if it is not finite."""
    number = float(value)
    return number if math.isfinite(number) else None


def disentangle(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train one model, encode unseen images and score their codes.

    Parameters
    ----------
    parameters : mapping
        `dataset`, `n` (training images), `evaluation` (unseen images), and the model, see `train_and_encode`.
        `draw` is the number of the training draw if it is not the seed; `dci` adds that metric, which takes longer
        than all others together; `all_images` adds scores of a second evaluation set of the same size, drawn from
        all images.
    seed : int
        Determines the training draw and everything random in the model.

    Returns
    -------
    dict
        irs, mig, sap, each with its `_chance`; train_s, encode_s; details of the fit; under `all_images` the scores of
        the second set.
    """
    number, n_evaluation = parameters.get("draw", seed), parameters["evaluation"]
    problem = draw(parameters["dataset"], number, parameters["n"], n_evaluation)
    if not parameters.get("all_images"):
        found = train_and_encode(parameters, problem.train, problem.evaluation, seed)
        more = _dci(found.scored, problem.factors) if parameters.get("dci") else {}
        return {**result_of(found, problem), **more}
    images, factors = drawn_from_all(parameters["dataset"], number, n_evaluation)
    both = train_and_encode(parameters, problem.train, np.concatenate([problem.evaluation, images]), seed)
    found, again = both.rows(slice(n_evaluation)), both.rows(slice(n_evaluation, None))
    return {**result_of(found, problem), "all_images": scores_of(again.scored, factors)}


def _dci(codes: Array, factors: NDArray[np.int64]) -> dict[str, float]:
    found = metrics.dci(codes, factors)
    return {
        "dci": found.disentanglement,
        "dci_completeness": found.completeness,
        "dci_accuracy": found.informativeness_test,
    }


def equal_time(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train our model, then the β-VAE for `times` times as long, both on this CPU.

    Returns
    -------
    dict
        The results of `disentangle` as "drkm" and "beta-vae", side by side.
    """
    problem = draw(parameters["dataset"], seed, parameters["n"], parameters["evaluation"])
    images = problem.train, problem.evaluation
    own = {name: parameters[name] for name in ("layers", "eta") if name in parameters}
    ours = train_and_encode({"family": "drkm", **own}, *images, seed)
    rival = {"family": "beta-vae", "beta": parameters["beta"], "device": "cpu"}
    theirs = train_and_encode({**rival, "max_seconds": parameters["times"] * ours.seconds}, *images, seed)
    return {"drkm": result_of(ours, problem), "beta-vae": result_of(theirs, problem)}


def result_of(found: Codes, problem: TrainingDraw) -> dict[str, Any]:
    """Return scores, times and details of a fit."""
    timed = {"train_s": found.seconds, "encode_s": found.encoding_seconds}
    return {**scores_of(found.scored, problem.factors), **timed, **found.details}


def stability(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train on resamples of one draw and compare the codes that each fit gives to the same unseen images.

    Parameters
    ----------
    parameters : mapping
        `dataset`, `n`, `evaluation`, `resamples`, and the model as in `disentangle`. A resample is n images drawn
        from the n images of the draw with replacement.
    seed : int

    Returns
    -------
    dict
        Lists with one entry per layer, means over pairs of resamples: `shared`, the mean squared cosine of the
        principal angles between the spans of the centred codes (1: the same subspace), `shared_chance`, what random
        subspaces of that size share, `angle`, the largest principal angle in degrees; and `agreement` of single codes.
    """
    problem = draw(parameters["dataset"], seed, parameters["n"], parameters["evaluation"])
    fits = []
    for number in range(parameters["resamples"]):
        rows = np.random.default_rng([seed, number]).integers(parameters["n"], size=parameters["n"])
        fits.append(train_and_encode(parameters, problem.train[rows], problem.evaluation, seed + number))
    depth = range(len(fits[0].layers))
    pairs = list(combinations(fits, 2))
    angles = [[_angles(a.layers[layer], b.layers[layer]) for a, b in pairs] for layer in depth]
    sizes = [codes.shape[1] for codes in fits[0].layers]
    return {
        "shared": [float(np.mean([np.mean(np.cos(angle) ** 2) for angle in layer])) for layer in angles],
        "shared_chance": [size / (parameters["evaluation"] - 1) for size in sizes],
        "angle": [float(np.degrees(np.mean([angle.max() for angle in layer]))) for layer in angles],
        "agreement": [float(np.mean([agreement(a.layers[i], b.layers[i]) for a, b in pairs])) for i in depth],
        "train_s": float(np.mean([fit.seconds for fit in fits])),
        "device": fits[0].details["device"],
    }


def candidate(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train our model on several draws, and score layer 1 with every choice of axes, also by unsupervised criteria.

    Parameters
    ----------
    parameters : mapping
        `dataset`, `n`, `evaluation`, `draws`, and the model as in `disentangle`.
    seed : int
        The first training draw.

    Returns
    -------
    dict
        Axes → lists with one entry for each draw: irs and mig with their `_chance`, dependence and kurtosis of the
        codes; and `agreement` of two fits on common images, the mean over pairs of draws.
    """
    common, _ = data.load(parameters["dataset"]).sample(COMMON, random_state=COMMON_DRAW)
    size = parameters["layers"][0]
    found: dict[str, list[dict[str, Any]]] = {axes: [] for axes in AXES}
    shared: dict[str, list[Array]] = {axes: [] for axes in AXES}
    for number in range(seed, seed + parameters["draws"]):
        problem = draw(parameters["dataset"], number, parameters["n"], parameters["evaluation"])
        rows = rows_of(problem.train)
        with quiet():
            model = default_model(parameters, rows).fit(rows)
        codes, others = (encode(model, images)[:, :size] for images in (problem.evaluation, common))
        for axes in AXES:
            R = rotation(axes, len(rows) ** 0.5 * model.codes_[:, :size])
            shared[axes].append(others @ R)
            found[axes].append(_criteria(codes @ R, problem.factors))
    return {
        axes: {name: [one[name] for one in each] for name in each[0]}
        | {"agreement": _mean([agreement(a, b) for a, b in combinations(shared[axes], 2)])}
        for axes, each in found.items()
    }


def _criteria(codes: Array, factors: NDArray[np.int64]) -> dict[str, Any]:
    dependence = metrics.unsupervised(codes).mutual_information
    more = {"dependence": finite(dependence), "kurtosis": finite(np.mean(kurtosis(codes)))}
    return {**scores_of(codes, factors, ("irs", "mig")), **more}


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _angles(first: Array, second: Array) -> Array:
    """Return principal angles between the spans of centred codes: a shared constant does not count as agreement.

    Constant codes span nothing and agree with nothing: their angle is a right angle.
    """
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    found = subspace_angles(first, second) if first.any() and second.any() else np.empty(0)
    return np.concatenate([found, np.full(first.shape[1] - len(found), np.pi / 2)])


def agreement(first: Array, second: Array) -> float:
    """Return the agreement of two sets of codes of the same images, up to order, sign and monotone maps of the codes.

    The unsupervised disentanglement ranking of Duan et al. (2020) with rank correlations R: the mean over codes of
    both sets of max²/sum of |R| along the other set. It is 1 if every code has exactly one partner.
    """
    ranks = [np.apply_along_axis(rankdata, 0, codes) for codes in (first, second)]
    # A constant code has undefined correlations, which count as no agreement.
    with np.errstate(invalid="ignore", divide="ignore"):
        R = np.abs(np.corrcoef(ranks[0].T, ranks[1].T)[: first.shape[1], first.shape[1] :])
        R = np.nan_to_num(R)
        rows, columns = R.max(axis=1) ** 2 / R.sum(axis=1), R.max(axis=0) ** 2 / R.sum(axis=0)
    return float(np.nan_to_num(np.concatenate([rows, columns])).mean())
