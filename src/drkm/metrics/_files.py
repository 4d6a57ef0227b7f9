"""Scoring of codes and factors in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path

from drkm.files import ANOMALY, QUALITY, Columns, Table, listed, read_table
from drkm.files.json_values import plain
from drkm.metrics._evaluate import ScoreTable, evaluate
from drkm.metrics._validation import BIN

FORMATS = ("table", "json", "csv", "markdown")


def evaluate_files(
    codes_path: str | PathLike[str],
    factors_path: str | PathLike[str],
    *,
    format: str = "table",
    id: str | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    metrics: Sequence[str] | None = None,
    standardize: bool = False,
    continuous: bool = False,
    random_state: int = 0,
) -> str:
    """Score the codes of one file against the factors of another, by all metrics with their chance levels.

    Parameters
    ----------
    codes_path, factors_path : path
        `.npy`, `.npz` (one array, one called `codes` or `factors`, or one per column), `.parquet`, or
        `.csv` with or without a line of names; one row per sample. Factors are called by the names of their columns,
        or by those in an array `factor_names` beside `factors`; classes may be given as text.
    format : {"table", "json", "csv", "markdown"}
    id, drop : str and sequence of str, optional
        The column of row names, and further columns to leave out; at least one of the files must have each. If both
        files have row names, they must agree. The columns that `drkm encode --quality` adds are never used as codes.
    header : bool, optional
        Whether `.csv` files have a header line; by default detected.
    metrics, standardize, continuous, random_state
        As in `evaluate`.

    Returns
    -------
    str
        The table, or JSON with the rows under `scores`, scores per factor under `factors` and notes under `notes`;
        undefined scores are null there.

    Raises
    ------
    ValueError
        If a file is missing, unreadable or of the wrong shape.
    """
    if format not in FORMATS:
        raise ValueError(f"format: unknown name {format!r}, allowed are {', '.join(FORMATS)}")
    columns = Columns(id, drop, strict=False, header=header)
    codes = _without_quality(_read(codes_path, "codes", columns))
    factors = _read(factors_path, "factors", replace(columns, classes=not continuous))
    read = ((codes_path, codes), (factors_path, factors))
    _check_names(read, id=[] if id is None else [id], drop=drop)
    if id is not None:
        _check_rows(read)
    if header is not None and not any(Path(path).suffix.lower() in (".csv", ".tsv") for path, _ in read):
        raise ValueError(f"header: is for a .csv or .tsv file, not for {codes_path} and {factors_path}")
    try:
        found = evaluate(
            codes.values,
            factors.values,
            metrics=metrics,
            standardize=standardize,
            continuous=continuous,
            factor_names=factors.columns,
            random_state=random_state,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).replace(BIN, "for numbers pass --continuous (continuous=True)")) from None
    return _written(found, format)


def _read(path: str | PathLike[str], name: str, columns: Columns) -> Table:
    table = read_table(path, name, columns=columns, pictures=None)
    if table.shape is not None:
        raise ValueError(f"{name}: {path} should hold one row per sample, its samples have shape {table.shape}")
    return table


def _without_quality(codes: Table) -> Table:
    """Return codes without the quality columns of `drkm encode --quality --anomaly`."""
    # Earlier versions wrote only the first two.
    several = [(*told, *more) for told in (QUALITY, QUALITY[:2], ()) for more in ((ANOMALY,), ()) if told or more]
    if codes.columns is None or not any(codes.header[-len(told) :] == told for told in several):
        return codes
    used = [index for index, name in enumerate(codes.columns) if name not in (*QUALITY, ANOMALY)]
    return replace(codes, values=codes.values[:, used], columns=tuple(codes.columns[index] for index in used))


def _check_names(read: Sequence[tuple[str | PathLike[str], Table]], **wanted: Sequence[str]) -> None:
    """Refuse names that no file has, so that none is silently ignored."""
    for option, names in wanted.items():
        for name in names:
            if not any(name in table.header for _, table in read):
                there = (f"{path} has {listed(table.header) or 'no names'}" for path, table in read)
                raise ValueError(f"{option}: no column is called {name!r}, {', '.join(there)}")


def _check_rows(read: Sequence[tuple[str | PathLike[str], Table]]) -> None:
    """Refuse files whose rows are not the same samples in the same order."""
    (codes_path, codes), (factors_path, factors) = read
    if codes.names is None or factors.names is None or len(codes.names) != len(factors.names):
        return
    for row, (one, other) in enumerate(zip(codes.names, factors.names, strict=True), 1):
        if one.strip() != other.strip():
            raise ValueError(
                f"id: row {row} is {one!r} in {codes_path} and {other!r} in {factors_path}: bring the rows to one order"
            )


def _written(found: ScoreTable, format: str) -> str:
    if format == "csv":
        return found.to_csv().rstrip("\n")
    if format == "markdown":
        return found.to_markdown()
    if format == "json":
        factors = [asdict(row) for row in found.by_factor]
        held = {"scores": found.to_dicts(), "factors": factors, "notes": found.notes}
        return json.dumps(plain(held), ensure_ascii=False, indent=2)
    return str(found)
