"""What a metric says of itself, beside its function; tables and the command line are made from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from drkm.metrics._result import MetricResult
from drkm.validation.registry import Registry

Function = TypeVar("Function", bound=Callable[..., MetricResult])


@dataclass(frozen=True)
class Score:
    """A row of the table of `evaluate`.

    Attributes
    ----------
    attribute : str
        Of the result of the metric.
    title : str
        What the table calls it.
    better : {"high", "low"}
    """

    attribute: str
    title: str
    better: str = "high"


@dataclass(frozen=True)
class Metric:
    """A function of codes and factors, with what tables need to know of it.

    The parameters of the function say the rest: one with `random_state` gets the seed of the table, one with
    `standardize` and `continuous` what `evaluate` was given for them.

    Attributes
    ----------
    function : callable
        Its name is the name of the metric.
    scores : tuple of Score
        Its rows in a table.
    of_each_factor : Score or None
        The attribute with one number per factor, for the second table.
    repeats : int
        Shuffles for the chance level: as many as keep the whole table within seconds.
    compares_factors : bool
        Whether it needs two factors at least.
    takes_factors : bool
        One that does not is a function of the codes alone; chance then is the level of independent codes.
    note : callable or None
        From a result to a sentence below the table, or to an empty text.
    """

    function: Callable[..., Any]
    scores: tuple[Score, ...] = ()
    of_each_factor: Score | None = None
    repeats: int = 20
    compares_factors: bool = False
    takes_factors: bool = True
    note: Callable[[Any], str] | None = None

    def takes(self, option: str) -> bool:
        """Whether the function has a parameter of that name."""
        return option in inspect.signature(self.function).parameters

    def __call__(self, codes: Any, factors: Any, **options: Any) -> Any:
        """Return the result of the function."""
        return self.function(codes, factors, **options) if self.takes_factors else self.function(codes, **options)

    def of_shuffled(
        self, codes: np.ndarray, factors: Any, repeats: int, rng: np.random.Generator, options: dict[str, Any]
    ) -> Iterator[Any]:
        """Yield results for codes that were shuffled: their rows, or each code on its own if there are no factors."""
        for _ in range(repeats):
            shuffled = codes[rng.permutation(len(codes))] if self.takes_factors else rng.permuted(codes, axis=0)
            yield self(shuffled, factors, **options)


#: all metrics by name, in the order of tables
METRICS: Registry[Metric] = Registry("metric", "metrics")


def metric(*scores: Score, **facts: Any) -> Callable[[Function], Function]:
    """Make a function known as a metric, by its own name.

    Parameters
    ----------
    *scores : Score
        Its rows in the table of `evaluate`.
    **facts
        Other attributes of `Metric`.
    """

    def known(function: Function) -> Function:
        METRICS.add(function.__name__, Metric(function, scores, **facts), function)
        return function

    return known
