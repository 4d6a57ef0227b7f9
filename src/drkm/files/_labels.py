"""Reading of labels of samples, as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from drkm.files._read import read_table
from drkm.files._table import Columns, listed

TABLES = (".csv", ".tsv", ".parquet")


def read_labels(
    path: Path, names: Sequence[str] | None = None, *, header: bool | None = None
) -> dict[str, Sequence[str]]:
    """Return columns of a file by name, each entry as text: the requested ones, or all.

    Columns of arrays, which have no names, are called label, or label 0, label 1, ….
    """
    if path.suffix.lower() not in TABLES:
        table = read_table(path, "labels", pictures=None)
        several = table.values.shape[1] > 1
        titles = table.columns or [f"label {index}" if several else "label" for index in range(table.values.shape[1])]
        columns = dict(zip(titles, table.values.T, strict=True))
        # Integers are written without a decimal point.
        return {title: [f"{value:.6g}" for value in column] for title, column in columns.items()}
    known = read_table(path, "labels", columns=Columns(only=(), header=header), pictures=None).header
    wanted = [title for title in known if title] if names is None else names
    missing = [title for title in wanted if title not in known]
    if missing:
        raise ValueError(f"labels: {path} has no column {missing[0]!r}, its columns are {listed(known)}")
    tables = {title: read_table(path, "labels", columns=Columns(title, only=(), header=header)) for title in wanted}
    return {title: [entry.strip() for entry in table.names or ()] for title, table in tables.items()}
