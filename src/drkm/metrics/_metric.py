"""The description of a metric besides its function, from which tables and the command line are made."""

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
        Attribute of the result.
    title : str
        Title in the table.
    better : {"high", "low"}
    """

    attribute: str
    title: str
    better: str = "high"


@dataclass(frozen=True)
class Metric:
    """A metric: a function of codes and factors, with the facts that tables need.

    The parameters of the function say the rest: `random_state` gets the seed of the table, `standardize` and
    `continuous` the values that were passed to `evaluate`.

    Attributes
    ----------
    function : callable
        Its name is the name of the metric.
    scores : tuple of Score
        Its rows in a table.
    of_each_factor : Score or None
        The attribute with one number per factor, for the second table.
    repeats : int
        Number of shuffles for the chance level, such that the whole table takes seconds.
    compares_factors : bool
        Whether it needs at least two factors.
    takes_factors : bool
        If False, it is a function of the codes alone; chance is then the level of independent codes.
    note : callable or None
        Function from a result to a note below the table, or an empty text.
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
        """Yield results for shuffled codes: shuffled rows, or each code separately if there are no factors."""
        for _ in range(repeats):
            shuffled = codes[rng.permutation(len(codes))] if self.takes_factors else rng.permuted(codes, axis=0)
            yield self(shuffled, factors, **options)


#: all metrics by name, in the order of tables
METRICS: Registry[Metric] = Registry("metric", "metrics")


def metric(*scores: Score, **facts: Any) -> Callable[[Function], Function]:
    """Register a function as a metric under its own name.

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
