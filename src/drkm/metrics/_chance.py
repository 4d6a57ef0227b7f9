"""Chance levels: the scores of codes without information on the factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._metric import METRICS, Metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import check_codes, check_random_state
from drkm.validation import checks


@dataclass(frozen=True, eq=False, repr=False)
class Chance(MetricResult):
    """Scores of shuffled codes.

    Attributes
    ----------
    score : float
        Their mean.
    sd : float
        Their standard deviation (n - 1); nan for a single repeat.
    values : ndarray of shape (repeats,)
    """

    sd: float
    values: np.ndarray


def chance(
    metric: str | Callable[..., Any],
    codes: Any,
    factors: Any,
    *,
    repeats: int = 20,
    random_state: int = 0,
    **options: Any,
) -> Chance:
    """Return the chance level of a metric: its score after the rows of the codes are shuffled.

    Shuffled codes keep their distribution (tails, scale, correlations) and lose all relation to the factors, so that
    their score is what the metric gives to meaningless codes.

    Parameters
    ----------
    metric : str or callable
        A function of this module, its name, or any function of codes and factors whose result is a number.
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k)
        Passed on unchanged; not used by `unsupervised`.
    repeats : int, default=20
        Number of shuffles.
    random_state : int, default=0
        Seed of the shuffles.
    **options
        Passed on to the metric.

    Returns
    -------
    Chance
        `float(result)` is the mean score.

    Notes
    -----
    `unsupervised` uses no factors and does not depend on the order of rows. For it, each code is shuffled separately:
    the level is that of independent codes.
    """
    scores = shuffled_results(_find(metric), codes, factors, repeats, random_state, options)
    return summarize([float(result) for result in scores])


def summarize(scores: list[float]) -> Chance:
    """Return mean, standard deviation and values of scores."""
    values = np.array(scores)
    finite = len(values) > 1 and bool(np.isfinite(values).all())
    return Chance(float(values.mean()), float(values.std(ddof=1)) if finite else math.nan, values)


def shuffled_results(
    metric: Metric, codes: Any, factors: Any, repeats: int, random_state: int, options: dict[str, Any]
) -> Iterator[Any]:
    """Return the results of a metric on codes shuffled `repeats` times."""
    count, rng = checks.integer("repeats", repeats, 1), check_random_state(random_state)
    return metric.of_shuffled(check_codes(codes), factors, count, rng, options)


def _find(metric: str | Callable[..., Any]) -> Metric:
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ValueError(f"metric: expected one of {', '.join(METRICS)}, got {metric!r}")
        return METRICS[metric]
    if not callable(metric):
        raise TypeError(f"metric: expected a metric or its name, got {metric!r}")
    return next((known for known in METRICS.values() if known.function is metric), Metric(metric))
