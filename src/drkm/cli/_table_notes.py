"""What commands say about the data that they read: row names, folders, and entries that are probably mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drkm import files
from drkm.cli._outcome import note, warn

#: number of rows from which a column that counts them is no coincidence
LEAST_ROWS = 5
#: an entry this many interquartile ranges away from the median of its column is probably no measurement
FAR = 50.0


def tell_names(path: Path, table: files.Table) -> None:
    """Report the column that was detected as row names, and a first column of data that counts the rows."""
    import shlex

    if table.found_id:
        note(
            f"{path}: column {table.title!r} has a different text in every row: used as row names, not as data "
            f"(--id {shlex.quote(table.title)} says the same, --drop leaves it out)"
        )
    elif (counting := _counting_column(table)) is not None:
        option = shlex.quote(counting)
        note(
            f"{path}: column {counting!r} counts the rows and is used as data: leave it out with --drop {option}, or "
            f"use it as row names with --id {option}"
        )


def _counting_column(table: files.Table) -> str | None:
    """Return the name of the first column if it is data and counts the rows, from 0 or from 1."""
    count, width = table.values.shape
    if table.places[:1] != (0,) or width < 2 or count < LEAST_ROWS:
        return None
    counts = any(np.array_equal(table.values[:, 0], np.arange(first, first + count)) for first in (0, 1))
    return table.header[0] if counts else None


def tell_folders(path: Path) -> None:
    """Report folders in a folder of images, which are not read."""
    if path.is_dir() and (inner := sorted(entry.name for entry in path.iterdir() if entry.is_dir())):
        folders = "folder" if len(inner) == 1 else "folders"
        note(f"{path}: images in the {folders} {files.listed(inner)} are not read")


def tell_far_entries(path: Path, table: files.Table) -> None:
    """Warn of numbers far from the rest of a column with a name, as -9999 is that stands for a missing value."""
    if table.columns is None:
        return
    found = [(row, column) for column, entries in enumerate(table.values.T) for row in _far(entries)]
    if not found:
        return
    row, column = min(found)
    where = f"in row {row + 1} of column {table.columns[column]!r}: {table.values[row, column]:g}"
    if len(found) == 1:
        told, mend = f"has an entry far from the rest of its column {where}", "correct it, or leave it empty if it is"
    else:
        told = f"has {len(found)} entries far from the rest of their columns, the first {where}"
        mend = "correct them, or leave them empty if they are"
    warn(f"data: {path} {told}; {mend} missing")


def _far(entries: np.ndarray) -> list[int]:
    """Return the rows whose entries are far from the median of a column."""
    known = entries[~np.isnan(entries)]
    if len(known) < LEAST_ROWS:
        return []
    low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
    return np.flatnonzero(np.abs(entries - middle) > FAR * (high - low)).tolist() if high > low else []
