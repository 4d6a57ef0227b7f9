"""Scoring codes and factors that lie in files."""

from __future__ import annotations

import csv
import json
import math
import zipfile
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from drkm.metrics._evaluate import Evaluation, evaluate

FORMATS = ("table", "json", "csv", "markdown")


def evaluate_files(
    codes_path: str | PathLike[str],
    factors_path: str | PathLike[str],
    *,
    format: str = "table",
    metrics: Sequence[str] | None = None,
    standardize: bool = False,
    continuous: bool = False,
    random_state: int = 0,
) -> str:
    """Score the codes of one file against the factors of another, all metrics beside their chance level.

    Parameters
    ----------
    codes_path, factors_path : path
        ``.npy``, ``.npz`` (one array, or one called ``codes`` or ``factors``), or ``.csv`` with or without a line of
        names; one row a sample.
    format : {"table", "json", "csv", "markdown"}
    metrics, standardize, continuous, random_state
        As in `evaluate`.

    Returns
    -------
    str
        The table, or JSON with the rows under ``scores`` and how to read them under ``notes``; a score that is not
        defined is null there.

    Raises
    ------
    ValueError
        One sentence, for a file that is missing, unreadable or of the wrong shape.
    """
    if format not in FORMATS:
        raise ValueError(f"format: unknown name {format!r}, allowed are {', '.join(FORMATS)}")
    codes, factors = read_array(codes_path, "codes"), read_array(factors_path, "factors")
    try:
        found = evaluate(
            codes,
            factors,
            metrics=metrics,
            standardize=standardize,
            continuous=continuous,
            random_state=random_state,
        )
    except TypeError as error:
        raise ValueError(str(error)) from None
    return _written(found, format)


def read_array(path: str | PathLike[str], name: str) -> np.ndarray:
    """Return the two-dimensional array of numbers in a file; one column may be stored without its second dimension."""
    file = Path(path)
    readers: dict[str, Callable[[Path, str], np.ndarray]] = {".npy": _npy, ".npz": _npz, ".csv": _csv}
    read = readers.get(file.suffix.lower())
    if read is None:
        raise ValueError(f"{name}: {file} should end in .npy, .npz or .csv")
    if not file.is_file():
        raise ValueError(f"{name}: there is no file {file}")
    try:
        array = read(file, name)
    except _Refused as error:
        raise ValueError(f"{name}: {file} {error}") from None
    except (OSError, ValueError, EOFError, KeyError, SyntaxError, zipfile.BadZipFile, MemoryError):
        raise ValueError(f"{name}: {file} cannot be read as {file.suffix.lower()}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: {file} holds {array.dtype}, not real numbers")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name}: {file} should hold one row a sample, got shape {array.shape}")
    return array


class _Refused(Exception):
    """What a file lacks, as the end of a sentence that begins with its name."""


def _npy(file: Path, name: str) -> np.ndarray:
    # numpy leaves a file open that it cannot read; a stream of ours is closed.
    with file.open("rb") as stream:
        array = np.load(stream, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise _Refused("is an archive of several arrays, name it .npz")
    return array


def _npz(file: Path, name: str) -> np.ndarray:
    with file.open("rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise _Refused("is a single array, name it .npy")
        held = archive.files
        if name not in held and len(held) != 1:
            raise _Refused(f"should hold one array or one called {name!r}, holds {', '.join(held) or 'none'}")
        return archive[name if name in held else held[0]]


def _csv(file: Path, name: str) -> np.ndarray:
    with file.open(newline="", encoding="utf-8-sig") as stream:
        lines = [line for line in csv.reader(stream) if line]
    if lines and not _are_numbers(lines[0]):
        lines = lines[1:]
    if not lines:
        raise _Refused("has no rows")
    for number, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            raise _Refused(f"has {len(line)} entries in row {number} and {len(lines[0])} in the first")
        if not _are_numbers(line):
            raise _Refused(f"has an entry that is no number in row {number}")
    return np.array([[float(entry) for entry in line] for line in lines])


def _are_numbers(line: Sequence[str]) -> bool:
    try:
        for entry in line:
            float(entry)
    except ValueError:
        return False
    return True


def _written(found: Evaluation, format: str) -> str:
    if format == "csv":
        return found.to_csv().rstrip("\n")
    if format == "markdown":
        return found.to_markdown()
    if format == "json":
        rows = [{key: _json_number(value) for key, value in row.items()} for row in found.to_dicts()]
        return json.dumps({"scores": rows, "notes": list(found.notes)}, ensure_ascii=False, indent=2)
    return str(found)


def _json_number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
