"""The content of a data file as a table, and the choice of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

#: additional columns of codes that measure their quality
QUALITY = ("residual", "ambiguous", "strange")
#: the additional column with the anomaly score
ANOMALY = "anomaly"


class Refused(Exception):
    """What is wrong with a file: the end of a sentence that begins with its name."""


@dataclass(frozen=True)
class Table:
    """Numbers from a file, one row per sample, with the row and column names of the file.

    Attributes
    ----------
    values : array of shape (n, d)
    columns : names of the columns, if the file has them
    names : names of the rows: the requested column, or the file names of images
    title : title of the row names: the name of that column, or "file"
    shape : shape of one sample before it was made a row, for images
    pictures : whether the values come from image files, from 0 to 255
    header : names of all columns of the file, including those that are not values
    places : positions of the values among the columns of the header, for csv and parquet files
    found_id : whether the column of row names was detected (`Columns.finds_id`) rather than requested
    """

    values: np.ndarray
    columns: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    title: str = "name"
    shape: tuple[int, ...] | None = None
    pictures: bool = False
    header: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    found_id: bool = False

    def row_names(self) -> dict[str, tuple[str, ...]]:
        """Return the row names under their title, as a column to write."""
        return {} if self.names is None else {self.title: self.names}


@dataclass(frozen=True)
class Columns:
    """Which columns of a table with names to use as numbers.

    Attributes
    ----------
    id : the column of row names
    drop : columns to leave out
    only : the columns to use, in this order, if they are known; all others are left out
    strict : whether `id` and `drop` must be there
    header : whether the first line of a csv file is a header; None detects it
    usual_id : the column of row names to use if it exists and no other is requested
    gaps : whether an empty entry or NA is a gap, NaN, instead of an error
    classes : whether a text column holds classes, which are numbered in the order of their names
    finds_id : whether to use the only text column that differs in every row as row names, if there are none
    skips_text : whether to leave out columns of text instead of refusing them
    purpose : what the numbers are for, which decides the advice in errors: "training" may fill gaps with --impute,
        and data for a "model" must have all its columns
    """

    id: str | None = None
    drop: Sequence[str] = ()
    only: Sequence[str] | None = None
    strict: bool = True
    header: bool | None = None
    usual_id: str | None = None
    classes: bool = False
    gaps: bool = False
    finds_id: bool = False
    skips_text: bool = False
    purpose: Literal["", "training", "model"] = ""

    def choose(self, header: Sequence[str]) -> tuple[list[int], int | None]:
        """Return the positions of the columns to use, and of the row names."""
        position = {name: index for index, name in enumerate(header)}
        if len(position) < len(header):
            twice = next(name for index, name in enumerate(header) if position[name] != index)
            raise Refused(f"has two columns called {twice!r}: give each column a name of its own")
        # Data frames write row names as a first column without a name: never data.
        unnamed = [""] if header[0] == "" else []
        if self.strict:
            self._check(header, position)
        usual = (name for name in (self.usual_id, *unnamed) if name in position)
        id = self.id if self.id is not None else next(usual, None)
        named = position.get(id) if id is not None else None
        if self.only is not None:
            return [position[name] for name in self.only], named
        used = [index for name, index in position.items() if name not in (id, *unnamed, *self.drop)]
        if not used:
            raise Refused("has no columns left")
        return used, named

    def find_id(self, names: int | None, unique_text: Callable[[], list[int]], used: list[int]) -> int | None:
        """Return the position of the only possible column of row names, if the rows have no names yet."""
        if not self.finds_id or names is not None or self.only is not None:
            return None
        found = unique_text()
        return found[0] if len(found) == 1 and len(used) > 1 else None

    def _check(self, header: Sequence[str], position: Mapping[str, int]) -> None:
        for option, names in (("id", [] if self.id is None else [self.id]), ("drop", self.drop)):
            missing = [name for name in names if name not in position]
            if missing:
                raise Refused(f"has no column {missing[0]!r} for --{option}, its columns are {listed(header)}")
        needed = [name for name in self.drop if name in (self.only or ())]
        if needed:
            raise Refused(f"has the column {needed[0]!r}, which the model was trained on: leave it out of --drop")
        missing = [name for name in self.only or () if name not in position]
        if missing:
            columns = "the column" if len(missing) == 1 else "the columns"
            raise Refused(f"lacks {columns} {listed(missing)} that the model was trained on")


def numbered(entries: Sequence[str]) -> np.ndarray:
    """Return the index of each entry among the distinct ones, in the order of their names."""
    return np.unique(np.asarray(entries, dtype=str), return_inverse=True)[1]


def how_to_fill(purpose: str, *more: str) -> str:
    """Return advice on gaps in numbers for this purpose."""
    filled = "fill them in with --impute fill" if purpose == "training" else "fill them in with drkm fill"
    trained = ("fit the model with --impute fill",) if purpose == "model" else ()
    return either(("remove such rows", filled, *trained, *more))


def in_option(names: Sequence[str]) -> str:
    """Return names as a comma-separated option value, quoted for a shell where needed."""
    import shlex

    return shlex.quote(",".join(f'"{name}"' if "," in name else name for name in names))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names as text, shortened to the first few; quoted if they contain control characters."""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in map(str, names[:most]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown


def either(suffixes: Sequence[str]) -> str:
    """Return suffixes joined by commas and "or"."""
    *others, last = suffixes
    return f"{', '.join(others)} or {last}" if others else last
