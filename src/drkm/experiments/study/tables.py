"""Tables of scores beside their chance levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import ResultTable
from drkm.experiments.study.rows import chosen, values_of
from drkm.experiments.study.scales import DATASET_NAMES, FAMILY_NAMES, METRIC_NAMES, StudySizes, label
from drkm.experiments.study.verdicts import mean_and_spread


def scores(
    name: str, *by: str, caption: str = "Mean ± standard deviation", **where: Any
) -> Callable[[list[Row], StudySizes], ResultTable]:
    """Return a table of means and standard deviations of all scores with their chance levels, a line for each group.

    Parameters
    ----------
    name, caption : str
    *by : str
        What the runs of a group have in common.
    **where : objects
        What all rows of the table have in common.
    """

    def table(rows: list[Row], sizes: StudySizes) -> ResultTable:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in chosen(rows, **where):
            groups.setdefault(tuple(row.get(key, "") for key in by), []).append(row)
        return ResultTable(name, caption, [{**_named(by, key), **summary(group)} for key, group in groups.items()])

    return table


def summary(rows: Sequence[Row]) -> Row:
    """Return mean ± standard deviation of every score beside the mean chance level, runs and training time."""
    out: Row = {"runs": len(rows)}
    for metric, title in METRIC_NAMES.items():
        chance = values_of(rows, f"{metric}_chance")
        out[title] = mean_and_spread(values_of(rows, metric))
        out[f"{title} chance"] = round(float(np.mean(chance)), 3) if chance else ""
    seconds = values_of(rows, "train_s")
    out["training, s"] = round(float(np.mean(seconds)), 2) if seconds else ""
    return out


def _named(by: Sequence[str], key: Sequence[Any]) -> Row:
    out = {}
    for name, value in zip(by, key, strict=True):
        if name == "layers":
            value = label(value) if value else ""
        names = {"dataset": DATASET_NAMES, "family": FAMILY_NAMES}.get(name, {})
        out[{"n": "N", "gamma": "γ", "beta": "β", "layers": "components"}.get(name, name)] = names.get(value, value)
    return out
