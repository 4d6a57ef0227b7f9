"""Arrays of numpy and tables in Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drkm.files._table import Columns, Refused, Table, in_option, listed, numbered


def read_npy(file: Path) -> Table:
    """Return the array of a .npy file."""
    # numpy leaves a file open that it cannot read; a stream of ours is closed.
    with file.open("rb") as stream:
        values = np.load(stream, allow_pickle=False)
    if not isinstance(values, np.ndarray):
        raise Refused("is an archive of several arrays, name it .npz")
    return table_of(values)


def read_npz(file: Path, array: str | None, hint: str, columns: Columns) -> Table:
    """Return one array of a .npz file: the one asked for, else the one called `hint`, else the only one.

    Codes and factors, among whose arrays nobody chooses, may also be arrays of one dimension, a column each.
    """
    with file.open("rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise Refused("is a single array, name it .npy")
        held = archive.files
        if array is not None:
            if array not in held:
                raise Refused(f"has no array {array!r}, it holds {listed(held) or 'none'}")
            chosen = array
        elif hint in held:
            chosen = hint
        elif len(held) == 1:
            chosen = held[0]
        elif hint != "data" and _are_columns(archive):
            return _side_by_side(archive, columns)
        else:
            told = f"should hold one array or one called {hint!r}, holds {listed(held) or 'none'}"
            raise Refused(told if hint != "data" else f"{told}: choose one with --array")
        table = table_of(archive[chosen])
        # Datasets are saved with factor_names beside factors.
        titles = f"{chosen.removesuffix('s')}_names"
        if titles in held and table.shape is None and archive[titles].shape == table.values.shape[1:]:
            return _named(table.values, list(map(str, archive[titles])), columns)
        return table


def _are_columns(archive: Mapping[str, np.ndarray]) -> bool:
    shapes = {array.shape for array in archive.values()}
    return len(shapes) == 1 and len(shapes.pop()) == 1


def _side_by_side(archive: Mapping[str, np.ndarray], columns: Columns) -> Table:
    header = list(archive)
    used, names = columns.choose(header)
    table = table_of(np.column_stack([archive[header[index]] for index in used]))
    rows = None if names is None else tuple(map(str, archive[header[names]]))
    return replace(table, columns=tuple(header[index] for index in used), names=rows, header=tuple(header))


def _named(values: np.ndarray, header: Sequence[str], columns: Columns) -> Table:
    used, names = columns.choose(header)
    return Table(
        values[:, used],
        tuple(header[index] for index in used),
        None if names is None else tuple(map(str, values[:, names])),
        header=tuple(header),
    )


def table_of(values: np.ndarray) -> Table:
    """Return an array as a table; samples of more than one dimension, such as images, become rows."""
    if values.dtype.kind not in "biuf":
        raise Refused(f"holds {values.dtype}, not real numbers")
    if values.ndim == 0:
        raise Refused("should hold one row a sample, got a single number")
    shape = values.shape[1:] if values.ndim > 2 else None
    if not values.size:
        raise Refused(f"is empty, its shape is {values.shape}")
    return Table(values.reshape(len(values), -1), shape=shape)


def read_parquet(file: Path, columns: Columns) -> Table:
    """Return the numbers of a Parquet file."""
    try:
        import pandas

        frame = pandas.read_parquet(file)
    except ImportError:
        raise Refused("needs pandas and pyarrow to be read: pip install pandas pyarrow") from None
    header = [str(name) for name in frame.columns]
    used, names = columns.choose(header)
    if not len(frame):
        raise Refused("has no rows")
    titles = None if names is None else tuple(map(str, frame.iloc[:, names]))
    if columns.classes:
        frame = frame.apply(
            lambda column: pandas.Series(numbered(column), column.index) if _is_text(column) else column
        )
    text = [header[index] for index in used if frame.dtypes.iloc[index].kind not in "biuf"]
    if text:
        raise Refused(f"has no numbers in column {listed(text)}: leave it out with --drop {in_option(text[:8])}")
    return Table(
        frame.iloc[:, used].to_numpy(dtype=np.float64),
        tuple(header[index] for index in used),
        titles,
        header[names] if names is not None else "name",
        header=tuple(header),
    )


def _is_text(column: Any) -> bool:
    return all(isinstance(entry, str) for entry in column)
