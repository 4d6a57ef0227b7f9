"""Finished runs as rows, and how rows are chosen and grouped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from drkm.experiments.experiment import Row
from drkm.experiments.study.scales import METRIC_NAMES


def scored(row: Row) -> Row:
    """Return a row with the difference between each score and its chance level, None where one is missing."""
    layers = tuple(row.get("layers", ()))
    out = {**row, "layers": layers, "depth": len(layers)}
    for name in METRIC_NAMES:
        score, chance = row.get(name), row.get(f"{name}_chance")
        out[f"{name}_above"] = None if score is None or chance is None else score - chance
    return out


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows with these values, or values that satisfy a function; rows without such a value are omitted."""
    return [row for row in rows if all(_fits(row.get(name), value) for name, value in wanted.items())]


def _fits(found: Any, wanted: Any) -> bool:
    return found is not None and wanted(found) if callable(wanted) else found == wanted


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by several of their values, the first varying slowest; "" stands for a missing value."""
    rows = list(rows)
    if not names:
        return {(): rows}
    groups = by_value(({names[0]: "", **row} for row in rows), names[0])
    return {
        (value, *key): found for value, group in groups.items() for key, found in grouped(group, *names[1:]).items()
    }


def pivoted(rows: Iterable[Row], by: Sequence[str], column: str, value: str) -> list[Row]:
    """Return one line per combination of the values `by`, with one value of each of its rows; `column` names it."""
    lines: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in by)
        lines.setdefault(key, dict(zip(by, key, strict=True)))[column.format(**row)] = row[value]
    return list(lines.values())


def by_points(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Return rows by number of training images, the smallest first."""
    return dict(sorted(by_value(rows, "n").items()))


def by_value(rows: Iterable[Row], name: str) -> dict[Any, list[Row]]:
    """Return rows by one of their values, in the order in which the values appear."""
    out: dict[Any, list[Row]] = {}
    for row in rows:
        out.setdefault(row[name], []).append(row)
    return out


def at_common_points(rows: Sequence[Row], *families: str) -> list[Row]:
    """Return the rows at those N of each dataset at which all of the families were run.

    Models are compared only there, because missing runs would bias a comparison over several N.
    """
    run = {(row["dataset"], row["n"], row["family"]) for row in rows}
    return [row for row in rows if all((row["dataset"], row["n"], family) in run for family in families)]


def values_of(rows: Iterable[Row], name: str) -> list[float]:
    """Return one score of all rows that have it."""
    return [float(row[name]) for row in rows if row.get(name) is not None]
