"""Reading of numpy arrays and Parquet tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drkm.files._guarded import check_room
from drkm.files._npy import Header, NpzFile, check_npy
from drkm.files._table import Columns, Refused, Table, in_option, listed, numbered

#: bytes per number in memory, whatever its type in the file
NUMBER = 8
#: the first pyarrow that runs no code from a file (CVE-2023-47248)
SAFE = (14, 0, 1)


def read_npy(file: Path) -> Table:
    """Return the array of a .npy file."""
    with file.open("rb") as stream:
        if stream.read(2) == b"PK":
            raise Refused("is an archive of several arrays, name it .npz")
        stream.seek(0)
        header = check_npy(stream)
        _check_numbers(header)
        return table_of(header.arranged(np.fromfile(stream, header.dtype, header.size)))


def read_npz(file: Path, array: str | None, hint: str, columns: Columns) -> Table:
    """Return one array of a .npz file: the requested one, else the one called `hint`, else the only one.

    Files of codes and factors, for which no array can be chosen, may also hold one-dimensional arrays, one per column.
    """
    with file.open("rb") as stream:
        if stream.read(6) == b"\x93NUMPY":
            raise Refused("is a single array, name it .npy")
    with NpzFile(file) as archive:
        held = archive.names()
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
        _check_numbers(archive.header(chosen))
        table = table_of(archive.read(chosen))
        # Datasets are saved with factor_names besides factors.
        titles = f"{chosen.removesuffix('s')}_names"
        if titles in held and table.shape is None and archive.header(titles).shape == table.values.shape[1:]:
            return _named(table.values, list(map(str, archive.read(titles))), columns)
        return table


def _check_numbers(header: Header) -> None:
    """Refuse an array before it is read if it holds no numbers or does not fit into memory."""
    if header.dtype.kind not in "biuf":
        raise Refused(f"holds {header.dtype}, not real numbers")
    check_room(header.size * max(NUMBER, header.dtype.itemsize), f"declares {header}")


def _are_columns(archive: NpzFile) -> bool:
    shapes = {archive.header(name).shape for name in archive.names()}
    return len(shapes) == 1 and len(shapes.pop()) == 1


def _side_by_side(archive: NpzFile, columns: Columns) -> Table:
    header = archive.names()
    used, names = columns.choose(header)
    table = table_of(np.column_stack([archive.read(header[index]) for index in used]))
    rows = None if names is None else tuple(map(str, archive.read(header[names])))
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
    """Convert an array to a table; samples with more than one dimension, such as images, become rows."""
    if values.dtype.kind not in "biuf":
        raise Refused(f"holds {values.dtype}, not real numbers")
    if values.ndim == 0:
        raise Refused("should hold one row per sample, got a single number")
    shape = values.shape[1:] if values.ndim > 2 else None
    if not values.size:
        raise Refused(f"is empty, its shape is {values.shape}")
    return Table(values.reshape(len(values), -1), shape=shape)


def read_parquet(file: Path, columns: Columns) -> Table:
    """Return the numbers of a Parquet file."""
    frame = read_frame(file)
    header = [str(name) for name in frame.columns]
    used, names = columns.choose(header)
    if not len(frame):
        raise Refused("has no rows")
    found = columns.find_id(names, lambda: [index for index in used if _is_unique_text(frame.iloc[:, index])], used)
    if found is not None:
        used, names = [index for index in used if index != found], found
    if columns.skips_text:
        used = [index for index in used if _is_numeric(frame, index)] or used
    titles = None if names is None else tuple(map(str, frame.iloc[:, names]))
    if columns.classes:
        import pandas

        frame = frame.apply(
            lambda column: pandas.Series(numbered(column), column.index) if _is_text(column) else column
        )
    text = [header[index] for index in used if not _is_numeric(frame, index)]
    if text:
        raise Refused(f"has no numbers in column {listed(text)}: leave it out with --drop {in_option(text[:8])}")
    return Table(
        frame.iloc[:, used].to_numpy(dtype=np.float64),
        tuple(header[index] for index in used),
        titles,
        header[names] if names is not None else "name",
        header=tuple(header),
        places=tuple(used),
        found_id=found is not None,
    )


def read_frame(file: Path) -> Any:
    """Return a Parquet file as a data frame, if it fits into memory."""
    try:
        import pandas

        _check_parquet(file)
        return pandas.read_parquet(file)
    except ImportError:
        raise Refused("needs pandas and pyarrow to be read: pip install pandas pyarrow") from None


def _check_parquet(file: Path) -> None:
    """Refuse a table that does not fit into memory, or whose code would run, if the library for that is installed."""
    try:
        import pyarrow
        from pyarrow.parquet import read_metadata
    except ImportError:
        return
    if tuple(map(int, re.findall(r"\d+", pyarrow.__version__)[:3])) < SAFE:
        safe = ".".join(map(str, SAFE))
        raise Refused(f"needs pyarrow {safe} or newer: {pyarrow.__version__} would run code that a file can hold")
    declared = read_metadata(file)
    rows, columns = declared.num_rows, declared.num_columns
    check_room(rows * columns * NUMBER, f"declares {rows} rows of {columns} columns")


def _is_numeric(frame: Any, index: int) -> bool:
    return frame.dtypes.iloc[index].kind in "biuf"


def _is_text(column: Any) -> bool:
    return all(isinstance(entry, str) for entry in column)


def _is_unique_text(column: Any) -> bool:
    return _is_text(column) and column.is_unique
