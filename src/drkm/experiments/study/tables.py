"""Tables as data: how runs are grouped, and the cells of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import ResultTable
from drkm.experiments.study.rows import chosen, grouped, values_of
from drkm.experiments.study.scales import DATASET_NAMES, FAMILY_NAMES, METRIC_NAMES, StudySizes, label
from drkm.experiments.study.verdicts import mean_and_spread

#: table headings of the values by which runs are grouped, and how the values are written
HEADS = {"n": "N", "gamma": "γ", "beta": "β", "layers": "components", "width": "σ²₁ / median", "line": "model"}
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "dataset": DATASET_NAMES.__getitem__,
    "family": lambda value: FAMILY_NAMES.get(value, value),
    "layers": lambda value: label(value) if value else "",
}


def summary(rows: Sequence[Row]) -> Row:
    """Return mean ± standard deviation of every score, its mean chance level, number of runs and training time."""
    out: Row = {"runs": len(rows)}
    for metric, title in METRIC_NAMES.items():
        chance = values_of(rows, f"{metric}_chance")
        out[title] = mean_and_spread(values_of(rows, metric))
        out[f"{title} chance"] = round(float(np.mean(chance)), 3) if chance else ""
    seconds = values_of(rows, "train_s")
    out["training, s"] = round(float(np.mean(seconds)), 2) if seconds else ""
    return out


@dataclass(frozen=True, kw_only=True)
class Table:
    """One line per group of runs with the same values of some parameters."""

    name: str
    by: Sequence[str]
    #: may contain {dataset}, that of Table 2
    caption: str = "Mean ± standard deviation"
    #: rows of a group → its cells; a group without cells has no line
    cells: Callable[[list[Row]], Row] = summary
    #: which rows are shown
    where: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, rows: list[Row], sizes: StudySizes) -> list[ResultTable]:
        """Return the table of these rows, alone in a list."""
        lines = []
        for key, group in grouped(chosen(rows, **self.where), *self.by).items():
            named = {
                HEADS.get(name, name): WRITTEN.get(name, lambda same: same)(value)
                for name, value in zip(self.by, key, strict=True)
            }
            if cells := self.cells(group):
                lines.append({**named, **cells})
        return [ResultTable(self.name, self.caption.format(dataset=sizes.start_name), lines)]


def several(*makers: Callable[[list[Row], StudySizes], list[ResultTable]]) -> Callable[..., list[ResultTable]]:
    """Return a function of rows and sizes that makes the tables of all of these."""
    return lambda rows, sizes: [table for make in makers for table in make(rows, sizes)]


def spreads(rows: Sequence[Row], columns: Mapping[str, str], digits: int = 3) -> Row:
    """Return cells with mean ± standard deviation: title → score."""
    return {title: mean_and_spread(values_of(rows, score), digits) for title, score in columns.items()}
