"""`evaluate`: all metrics with their chance levels in one table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from drkm.files import write_whole
from drkm.metrics._chance import shuffled_results, summarize
from drkm.metrics._information import discretize
from drkm.metrics._metric import METRICS, Metric
from drkm.metrics._result import MetricResult
from drkm.metrics._validation import check_codes, check_factors, require_integer, require_varied
from drkm.validation import checks
from drkm.wording import aligned, markdown_table

#: range of standard deviations of codes without a warning
USUAL = (0.2, 5.0)


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes
    ----------
    metric : str
        Name of the metric function.
    name : str
        Name of the score.
    score : float
    chance, chance_sd : float
        Mean and standard deviation of the scores of shuffled codes.
    repeats : int
        Number of shuffles.
    better : {"high", "low"}
    """

    metric: str
    name: str
    score: float
    chance: float
    chance_sd: float
    repeats: int
    better: str

    @property
    def above_chance(self) -> float:
        """Score minus chance level."""
        return self.score - self.chance if math.isfinite(self.score) else math.nan


@dataclass(frozen=True)
class FactorRow:
    """The score of a metric for one factor.

    Attributes
    ----------
    factor : str
        Name of the factor.
    metric, name : str
        As in `Row`.
    score, chance : float
        Score of the given codes, and mean score of shuffled codes.
    """

    factor: str
    metric: str
    name: str
    score: float
    chance: float


@dataclass(frozen=True)
class ScoreTable:
    """All metrics with their chance levels; `str()` prints them as a table.

    Attributes
    ----------
    rows : tuple of Row
    results : mapping of str to MetricResult
        The full result of each metric for the given codes.
    notes : tuple of str
        How to read the table.
    by_factor : tuple of FactorRow
        Scores per factor, of the metrics that have them.
    unscaled : tuple of str
        Metrics that depend on the scale of codes, if that is far from 1; they have a star in the table.
    """

    rows: tuple[Row, ...]
    results: Mapping[str, MetricResult]
    notes: tuple[str, ...]
    by_factor: tuple[FactorRow, ...]
    unscaled: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Row:
        """Return the row of that name, or the first row of that metric."""
        for row in self.rows:
            if name in (row.name, row.metric):
                return row
        raise KeyError(f"{name}: expected one of {', '.join(row.name for row in self.rows)}")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary per row, including `above_chance`."""
        return [{**asdict(row), "above_chance": row.above_chance} for row in self.rows]

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """Return the rows as CSV, and write them to `path` if it is given."""
        text = io.StringIO()
        names = ["metric", "name", "score", "chance", "chance_sd", "above_chance", "repeats", "better"]
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.to_dicts())
        if path is not None:
            write_whole(path, lambda file: file.write(text.getvalue().encode()))
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the rows as a Markdown table, with the notes as a list below it."""
        return "\n".join([markdown_table(self._cells(), numbers=True), "", *(f"- {note}" for note in self.notes)])

    def __str__(self) -> str:
        lines = [*_underlined(self._cells()), *self.notes]
        if self.by_factor:
            lines += ["", *_underlined(self._factor_cells()), "in brackets: chance"]
        return "\n".join(lines)

    __repr__ = __str__

    def _cells(self) -> list[list[str]]:
        table = [["metric", "score", "chance", "± sd", "above", "shuffles"]]
        for row in self.rows:
            arrow = "↑" if row.better == "high" else "↓"
            numbers = [_number(value) for value in (row.score, row.chance, row.chance_sd, row.above_chance)]
            star = " *" if row.metric in self.unscaled else ""
            table.append([f"{row.name} {arrow}{star}", *numbers, str(row.repeats)])
        return table

    def _factor_cells(self) -> list[list[str]]:
        heads = list(dict.fromkeys(row.name for row in self.by_factor))
        count = len(self.by_factor) // len(heads)
        lines = [self.by_factor[j::count] for j in range(count)]
        cells = [[f"{_number(row.score)} ({_number(row.chance)})" for row in line] for line in lines]
        return [["factor", *heads], *([line[0].factor, *cell] for line, cell in zip(lines, cells, strict=True))]


def _underlined(cells: list[list[str]]) -> list[str]:
    head, *lines = aligned(cells)
    return [head, "-" * len(head), *lines]


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def evaluate(
    codes: Any,
    factors: Any,
    *,
    metrics: Sequence[str] | None = None,
    repeats: int | None = None,
    standardize: bool = False,
    continuous: bool = False,
    factor_names: Sequence[str] | None = None,
    random_state: int = 0,
) -> ScoreTable:
    """Compute all metrics, each with the score of row-shuffled codes as its chance level.

    Parameters
    ----------
    codes : array-like of shape (n, m), m at least 2
    factors : array-like of shape (n, k)
        Integer labels, or any numbers if `continuous`.
    metrics : sequence of str, optional
        Names of functions of this module; by default all of them.
    repeats : int, optional
        Shuffles for each chance level. By default 20, and fewer for metrics that train classifiers (3 for
        DCI); the table says how many.
    standardize : bool, default=False
        Scale codes to unit variance for the metrics that depend on scale (IRS, SAP, FactorVAE, BetaVAE).
        Codes of a kernel model, with entries about n^-1/2, need it; the table says so if they do.
    continuous : bool, default=False
        Whether factors are continuous: SAP uses them directly, the others in 20 equal-width bins.
    factor_names : sequence of str, optional
        Names of the factors in the table and in errors, such as `factor_names` of a dataset; by default the columns of
        a data frame, or `factor 0`, `factor 1`, ...
    random_state : int, default=0
        Seed of shuffles, splits and samples.

    Returns
    -------
    ScoreTable
        Train/test metrics (SAP, DCI, explicitness) hold a random third of the rows back. DCI uses its
        fast learner.
    """
    z = check_codes(codes, at_least=2)
    y = check_factors(factors, z.shape[0], names=factor_names)
    require_varied(y, "evaluate")
    if not continuous:
        require_integer(y, "evaluate without 'continuous'")
    chosen = _chosen(metrics)
    if repeats is not None:
        checks.integer("repeats", repeats, 1)
    labels = check_factors(discretize(y.values), names=y.names) if continuous else y

    rows: list[Row] = []
    by_factor: list[FactorRow] = []
    results: dict[str, MetricResult] = {}
    notes = ["chance: the same metric on codes whose rows were shuffled"]
    if not all(METRICS[name].takes_factors for name in chosen):
        notes.append("(for dependence between codes, marked ↓, each code was shuffled on its own)")
    remarks: list[str] = []
    for name in chosen:
        metric = METRICS[name]
        if y.count == 1 and metric.compares_factors:
            notes.append(f"{name}: left out, it compares factors and there is one")
            continue
        given: dict[str, Any] = {"standardize": standardize, "continuous": continuous, "random_state": random_state}
        options = {option: value for option, value in given.items() if metric.takes(option)}
        seen = y if options.get("continuous") else labels
        result = results[name] = metric(z, seen, **options)
        shuffled = list(shuffled_results(metric, z, seen, repeats or metric.repeats, random_state, options))
        rows += _rows(name, metric, result, shuffled)
        by_factor += _factor_rows(name, metric, result, shuffled, y.names)
        remarks += [remark for remark in [metric.note(result) if metric.note else ""] if remark]
    unscaled = () if standardize else tuple(name for name in results if METRICS[name].takes("standardize"))
    warning = _note_on_scale(z) if unscaled else None
    if warning is None:
        return ScoreTable(tuple(rows), results, (*notes, *remarks), tuple(by_factor))
    return ScoreTable(tuple(rows), results, (*notes, *remarks, warning), tuple(by_factor), unscaled)


def _note_on_scale(codes: np.ndarray) -> str | None:
    """Return a note on metrics that depend on scale, if the codes vary by far more or less than 1."""
    spread = codes.std(axis=0)
    spread = spread[spread > 0]
    if not len(spread) or (spread.min() >= USUAL[0] and spread.max() <= USUAL[1]):
        return None
    return (
        f"*: depends on the scale of codes, whose standard deviations here are {spread.min():.2g} to "
        f"{spread.max():.2g}: standardize (--standardize) makes them 1"
    )


def _chosen(metrics: Sequence[str] | None) -> list[str]:
    chosen = list(METRICS) if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    if not chosen:
        raise ValueError(f"metrics: expected some of {', '.join(METRICS)}, got none")
    for name in chosen:
        if name not in METRICS:
            raise ValueError(f"metrics: expected some of {', '.join(METRICS)}, got {name!r}")
    return chosen


def _rows(name: str, metric: Metric, result: MetricResult, shuffled: Sequence[MetricResult]) -> Iterator[Row]:
    for score in metric.scores:
        level = summarize([float(getattr(one, score.attribute)) for one in shuffled])
        value = float(getattr(result, score.attribute))
        yield Row(name, score.title, value, level.score, level.sd, len(shuffled), score.better)


def _factor_rows(
    name: str, metric: Metric, result: MetricResult, shuffled: Sequence[MetricResult], factors: Sequence[str]
) -> Iterator[FactorRow]:
    if metric.of_each_factor is not None:
        attribute, title = metric.of_each_factor.attribute, metric.of_each_factor.title
        levels = np.mean([getattr(one, attribute) for one in shuffled], axis=0).tolist()
        for factor, score, chance in zip(factors, getattr(result, attribute).tolist(), levels, strict=True):
            yield FactorRow(factor, name, title, score, chance)
