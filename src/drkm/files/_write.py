"""Writing of tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drkm.files._table import either
from drkm.files._whole import called, check_writable, write_whole

SUFFIXES = (".npy", ".npz", ".csv")


def check_target(path: Path, *, force: bool = False, suffixes: Sequence[str] | None = None) -> Path:
    """Check, before any work, that a file can be written there, or raise an error that says why not."""
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise ValueError(f"out: {path} should end in {either(suffixes)}")
    if path.exists() and not path.is_file():
        # A device such as /dev/stdout would be replaced by a file.
        raise ValueError(f"out: {path} is {'a folder' if path.is_dir() else 'not a regular file'}")
    return _check_place(path, force)


def names_folder(path: Path) -> bool:
    """Whether an output path is that of a folder: it has no suffix, or there is one."""
    return not path.suffix or path.is_dir()


def check_folder(path: Path) -> Path:
    """Check that a new folder can be written there; a folder that is not empty is never replaced."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ValueError(f"out: {path} exists and is not empty, choose a new folder")
    return _check_place(path, True)


def _check_place(path: Path, force: bool) -> Path:
    if not path.parent.is_dir():
        raise ValueError(f"out: there is no folder {path.parent}")
    if path.exists() and not force:
        raise ValueError(f"out: {path} exists, replace it with --force")
    with called("out"):
        check_writable(path)
    return path


def write_table(
    path: Path,
    values: np.ndarray,
    columns: Sequence[str],
    *,
    name: str = "data",
    shape: Sequence[int] | None = None,
    before: Mapping[str, Sequence[Any]] | None = None,
    after: Mapping[str, Sequence[Any]] | None = None,
) -> Path:
    """Write rows to a .npy, .npz or .csv file atomically.

    Parameters
    ----------
    path : Path
    values : array of shape (n, d)
    columns : sequence of str
        Names of the columns, for .csv.
    name : str
        Name of the array in .npz.
    shape : sequence of int, optional
        Shape of one row in .npy and .npz.
    before, after : mapping from name to sequence, optional
        First and last columns of .csv, additional arrays of .npz; .npy cannot hold them. In .npz, a name of `before`
        that another array has, or that numpy reserves, gets an underscore at its end; "file" becomes "files".
    """
    kind = path.suffix.lower()
    array = values.reshape(len(values), *shape) if shape else values
    if kind == ".npy":
        return write_whole(path, lambda file: np.save(file, array, allow_pickle=False))
    if kind == ".npz":
        arrays = {name: array, **(after or {})}
        # The title of row names, a column of the user's file, may be taken or reserved.
        named = {_free(key, arrays): entry for key, entry in (before or {}).items()}
        plain = {key: np.asarray(entry) for key, entry in {**named, **arrays}.items()}
        return write_whole(path, lambda file: np.savez(file, **plain))  # type: ignore[arg-type]
    text = _csv_text(values, columns, before or {}, after or {})
    return write_whole(path, lambda file: file.write(text.encode()))


def _free(title: str, taken: Collection[str]) -> str:
    """Return a name for an array that no other has and that is no parameter of numpy.savez."""
    if title == "file":
        return "files"
    return _free(f"{title}_", taken) if title in taken or title == "allow_pickle" else title


def _csv_text(
    values: np.ndarray, columns: Sequence[str], before: Mapping[str, Sequence[Any]], after: Mapping[str, Sequence[Any]]
) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*before, *columns, *after])
    left, right = list(before.values()), list(after.values())
    for number, row in enumerate(values.tolist()):
        writer.writerow([*(column[number] for column in left), *row, *(column[number] for column in right)])
    return buffer.getvalue()
