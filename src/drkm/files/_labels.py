"""Reading of labels of samples, as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drkm.files._arrays import read_frame
from drkm.files._csv import read_entries
from drkm.files._guarded import reading
from drkm.files._read import check_source, read_table
from drkm.files._table import Columns, Refused, listed
from drkm.wording import as_label

TABLES = (".csv", ".tsv", ".parquet")


def read_labels(
    path: Path, names: Sequence[str] | None = None, *, header: bool | None = None
) -> dict[str, Sequence[str]]:
    """Return columns of a file by name, each entry as text: the requested ones, or all.

    Columns without names, of arrays and of csv files without a header line, are called label, or label 0, label 1, ….
    """
    if path.suffix.lower() not in TABLES:
        table = read_table(path, "labels", pictures=None)
        titles = table.columns or _titles(table.values.shape[1])
        columns = zip(titles, table.values.T, strict=True)
        return {title: [as_label(value) for value in column] for title, column in columns}
    check_source(path, "labels", pictures=False)
    with reading(f"labels: {path}", f"cannot be read as {path.suffix.lower()}"):
        named, known, entries = _text_columns(path, names or (), header)
    if names is None and not named:
        return dict(zip(_titles(len(known)), entries, strict=True))
    wanted = [title for title in known if title] if names is None else names
    missing = [title for title in wanted if title not in known]
    if missing:
        raise ValueError(f"labels: {path} has no column {missing[0]!r}, its columns are {listed(known)}")
    return {title: entries[known.index(title)] for title in wanted}


def _titles(count: int) -> Sequence[str]:
    return [f"label {index}" for index in range(count)] if count > 1 else ["label"]


def _entries(column: Any) -> list[str]:
    """Return the entries of a column of a data frame as text, with nothing for a missing one, as csv files have it."""
    return ["" if missing else str(entry).strip() for entry, missing in zip(column, column.isna(), strict=True)]


def _text_columns(path: Path, names: Sequence[str], header: bool | None) -> tuple[bool, list[str], list[list[str]]]:
    """Return whether columns have names, the names or else the indices of the columns, and their entries."""
    if path.suffix.lower() == ".parquet":
        frame = read_frame(path)
        known = [str(name) for name in frame.columns]
        if not len(frame):
            raise Refused("has no rows")
        entries = [_entries(frame.iloc[:, index]) for index in range(len(known))]
        named = True
    else:
        named, known, rows = read_entries(path, Columns(only=names, header=header))
        entries = [[entry.strip() for entry in column] for column in zip(*rows, strict=True)]
    # Refuses two columns of the same name.
    Columns(only=()).choose(known)
    return named, known, entries
