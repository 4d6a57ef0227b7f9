"""What codes that know nothing would score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.metrics._beta_vae import beta_vae
from drkm.metrics._dci import dci
from drkm.metrics._explicitness import explicitness
from drkm.metrics._factor_vae import factor_vae
from drkm.metrics._irs import irs
from drkm.metrics._mig import mig
from drkm.metrics._modularity import modularity
from drkm.metrics._result import Result
from drkm.metrics._sap import sap
from drkm.metrics._unsupervised import unsupervised
from drkm.metrics._validation import check_codes, check_random_state
from drkm.validation import checks

METRICS: dict[str, Callable[..., Result]] = {
    "irs": irs,
    "mig": mig,
    "sap": sap,
    "dci": dci,
    "factor_vae": factor_vae,
    "beta_vae": beta_vae,
    "modularity": modularity,
    "explicitness": explicitness,
    "unsupervised": unsupervised,
}


@dataclass(frozen=True, eq=False, repr=False)
class Chance(Result):
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
    """The chance level of a metric: its score after the rows of the codes were shuffled.

    Shuffled codes keep their distribution (tails, scale, correlations) and lose all relation to the
    factors, so that what they score is what the metric gives for nothing.

    Parameters
    ----------
    metric : str or callable
        A function of this module, its name, or any function of codes and factors whose result is a number.
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k)
        Passed on as they are; not used by ``unsupervised``.
    repeats : int, default=20
        Number of shuffles.
    random_state : int, default=0
        Seed of the shuffles.
    **options
        Passed on to the metric.

    Returns
    -------
    Chance
        ``float(result)`` is the mean score.

    Notes
    -----
    ``unsupervised`` looks at no factors and does not notice the order of rows. For it, each code is
    shuffled on its own: the level is that of independent codes.
    """
    function = _find(metric)
    scores = [float(result) for result in shuffled_results(function, codes, factors, repeats, random_state, options)]
    return summarize(scores)


def summarize(scores: list[float]) -> Chance:
    """Mean, spread and values."""
    values = np.array(scores)
    finite = len(values) > 1 and bool(np.isfinite(values).all())
    return Chance(float(values.mean()), float(values.std(ddof=1)) if finite else math.nan, values)


def shuffled_results(
    function: Callable[..., Any],
    codes: Any,
    factors: Any,
    repeats: int,
    random_state: int,
    options: dict[str, Any],
) -> Iterator[Any]:
    """Results of ``function`` on codes shuffled ``repeats`` times."""
    z = check_codes(codes)
    rng = check_random_state(random_state)
    for _ in range(checks.integer("repeats", repeats, 1)):
        if function is unsupervised:
            yield function(rng.permuted(z, axis=0), **options)
        else:
            yield function(z[rng.permutation(z.shape[0])], factors, **options)


def _find(metric: str | Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ValueError(f"metric: expected one of {', '.join(METRICS)}, got {metric!r}")
        return METRICS[metric]
    if not callable(metric):
        raise TypeError(f"metric: expected a metric or its name, got {metric!r}")
    return metric
