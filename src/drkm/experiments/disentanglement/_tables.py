"""Tables of scores beside their chance levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.experiments.disentanglement._sweep import DATASET_NAMES, FAMILY_NAMES, METRIC_NAMES, Row, label, values_of
from drkm.experiments.disentanglement._verdicts import mean_and_spread
from drkm.experiments.section import Table


def score_table(name: str, caption: str, rows: Sequence[Row], by: Sequence[str]) -> Table:
    """Return means and standard deviations of all scores with their chance levels, one line a group of runs."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key, "") for key in by), []).append(row)
    return Table(name, caption, [{**_named(by, key), **summary(group)} for key, group in groups.items()])


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
