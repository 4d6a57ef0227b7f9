"""Reading of comma-separated values, with or without a header line."""

from __future__ import annotations

import csv
import operator
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from drkm.files._guarded import check_room
from drkm.files._table import Columns, Refused, Table, either, how_to_fill, in_option, listed, numbered

#: bytes that are read at once to count entries; of the first ones their number in the whole file is estimated
SAMPLE = 1 << 20
#: bytes of an entry while it is a text in a list and a number in an array, and of the list of a line
ENTRY, LINE = 80, 120

#: markers of missing values, in lower case
GAPS = frozenset(("", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "none", "?", "-", "."))
#: what may be an integer with a comma between its thousands, and a number with points between them and a decimal comma
THOUSANDS, GROUPED = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}"), re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")
#: truth values, in lower case, as numbers
TRUTH = {"true": "1", "false": "0"}


def read_csv(file: Path, columns: Columns) -> Table:
    """Return the numbers of a file with entries separated by commas, semicolons or tabs."""
    named, header, rows = read_entries(file, columns)
    used, names = columns.choose(header)
    found = columns.find_id(names, lambda: [index for index in used if _is_unique_text(rows, index)], used)
    if found is not None:
        used, names = [index for index in used if index != found], found
    if columns.skips_text:
        used = [index for index in used if not _is_text([row[index] for row in rows])] or used
    as_they_are = used == list(range(len(header)))
    chosen = rows if as_they_are else [[row[index] for index in used] for row in rows]
    if columns.gaps:
        chosen = [["nan" if entry.strip().lower() in GAPS else entry for entry in row] for row in chosen]
    values = _numbers(chosen, [header[index] for index in used], columns)
    return Table(
        values,
        tuple(header[index] for index in used) if named else None,
        None if names is None else tuple(row[names] for row in rows),
        (header[names] or "name") if names is not None else "name",
        header=tuple(header),
        places=tuple(used),
        found_id=found is not None,
    )


def read_entries(file: Path, columns: Columns) -> tuple[bool, list[str], list[list[str]]]:
    """Return whether the first line is a header, the names of the columns (else their indices), and rows of text.

    Columns without a name and without entries are left out.
    """
    _check_size(file)
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            delimiter = _delimiter(stream)
            stream.seek(0)
            lines = [line for line in csv.reader(stream, delimiter=delimiter) if line]
            if delimiter != ",":
                lines = _with_decimal_points(lines)
    except UnicodeDecodeError:
        raise Refused("is not UTF-8 text: save it with that encoding") from None
    except csv.Error as error:
        raise Refused(f"cannot be read as a table: {error}") from None
    # Spreadsheets write rows of nothing after the last one.
    while lines and not any(entry.strip() for entry in lines[-1]):
        lines.pop()
    if not lines:
        raise Refused("has no rows")
    named = _has_header(lines, columns)
    header = [name.strip() for name in lines[0]] if named else [str(index) for index in range(len(lines[0]))]
    rows = lines[1:] if named else lines
    if not rows:
        raise Refused("has no rows")
    _check_entries(header, rows)
    if named and not all(header):
        kept = [index for index, name in enumerate(header) if name or any(row[index].strip() for row in rows)]
        header, rows = [header[index] for index in kept], [[row[index] for index in kept] for row in rows]
    return named, header, rows


def _check_entries(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Refuse rows that are longer or shorter than the first line, and numbers that only spaces or bars separate."""
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            entries = "entry" if len(row) == 1 else "entries"
            raise Refused(
                f"has {len(row)} {entries} in row {number} and {len(header)} in the first line: give every row "
                "one entry per column, and leave out what is above the names of the columns"
            )
    for sign, called in ((None, "spaces"), ("|", "vertical bars")):
        parts = rows[0][0].split(sign)
        if len(header) == 1 and len(parts) > 1 and all(map(_is_number, parts)):
            raise Refused(f"has {called} between numbers: write commas, semicolons or tabs")


def _is_unique_text(rows: Sequence[Sequence[str]], index: int) -> bool:
    """Whether a column has a different text in every row."""
    entries = {row[index].strip() for row in rows if row[index].strip().lower() not in GAPS}
    return len(entries) == len(rows) and not any(_is_number(entry) or _has_decimal_comma(entry) for entry in entries)


def _is_text(entries: Sequence[str]) -> bool:
    """Whether most entries of a column that are not missing are neither numbers nor truth values."""
    known = [entry.strip() for entry in entries if entry.strip().lower() not in GAPS]
    text = [entry for entry in known if not (_is_number(entry) or _has_decimal_comma(entry))]
    return 2 * len(text) > len(known) and not _are_truth_values(known)


def _are_truth_values(entries: Sequence[str]) -> bool:
    """Whether all entries that are not missing are true or false."""
    return all(entry.strip().lower() in TRUTH or entry.strip().lower() in GAPS for entry in entries)


def _check_size(file: Path) -> None:
    """Refuse a file that does not fit into memory: at once if all of it is like its beginning, else after counting."""
    size, lines, entries = file.stat().st_size, 0, 0
    with file.open("rb") as stream:
        for begin in range(0, max(1, size), SAMPLE):
            part = stream.read(SAMPLE)
            lines, entries = lines + part.count(b"\n"), entries + sum(map(part.count, b",;\t\n"))
            share = size / max(1, len(part)) if begin == 0 else 1.0
            needed = int(size + share * (ENTRY * entries + LINE * lines))
            check_room(needed, f"holds {'about' if begin == 0 else 'at least'} {share * entries:.2g} entries")


def _delimiter(stream: TextIO) -> str:
    """Return what separates the entries of the first two lines: as many in both, most of them numbers in the second.

    A count of commas alone would be misled by names ("weight, kg") and decimal commas in a file with semicolons.
    """
    best, delimiter = (False, 0.0, 0), ","
    for candidate in ",;\t":
        stream.seek(0)
        first, *others = _first_lines(stream, candidate) or [[]]
        last = others[0] if others else first
        numbers = sum(_is_number(entry) or _has_decimal_comma(entry) for entry in last)
        found = (len(first) == len(last) > 1, numbers / max(1, len(last)), len(first))
        best, delimiter = max((best, delimiter), (found, candidate), key=operator.itemgetter(0))
    return delimiter


def _first_lines(stream: TextIO, delimiter: str) -> list[list[str]]:
    """Return the first two lines that are not empty, or none if this delimiter leaves an entry longer than allowed."""
    try:
        return [*islice(filter(None, csv.reader(stream, delimiter=delimiter)), 2)]
    except csv.Error:
        # Without its delimiter, a line of tens of thousands of numbers is one entry.
        return []


def _with_decimal_points(lines: list[list[str]]) -> list[list[str]]:
    """Return the lines of a file with decimal points if its numbers have decimal commas.

    Lines stay as they are if commas may separate thousands: if numbers have points, or all commas precede three digits.
    """
    entries = [entry for line in lines for entry in line if _has_decimal_comma(entry)]
    points = (entry for line in lines for entry in line if "." in entry and _is_number(entry))
    if all(THOUSANDS.fullmatch(entry.strip()) for entry in entries) or any(points):
        return lines
    return [[_with_decimal_point(entry) if _has_decimal_comma(entry) else entry for entry in line] for line in lines]


def _has_header(lines: Sequence[Sequence[str]], columns: Columns) -> bool:
    """Whether the first line is a header: requested names, text, or the numbers that data frames use as names."""
    first = [name.strip() for name in lines[0]]
    if columns.header is not None:
        return columns.header
    if columns.only and set(columns.only) <= set(first):
        return True
    if all(map(_is_number, first)):
        return len(first) > 1 and first == [str(index) for index in range(len(first))]
    alike = len(lines) > 1 and [*map(_is_number, first)] == [*map(_is_number, lines[1])]
    known = [name for name in first if name.lower() not in GAPS]
    # Text and numbers in both lines: a header with text and years, or a sample with its name. Or nothing but values.
    unsure = (alike and any(map(_is_number, first))) or (known and all(map(_is_value, known)))
    if unsure and first[0] != "":
        raise Refused("has a first line that may be names or a sample: say which with --header or --no-header")
    return True


def _is_value(entry: str) -> bool:
    return _is_number(entry) or entry.lower() in TRUTH


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    # Python reads 1_1 as 11, but it is rather the name of a sample.
    return "_" not in entry


def _numbers(rows: Sequence[Sequence[str]], header: Sequence[str], columns: Columns) -> np.ndarray:
    if columns.classes:
        rows = list(zip(*map(_numbered_if_text, zip(*rows, strict=True)), strict=True))
    try:
        return _converted(rows)
    except ValueError:
        rows = list(zip(*map(_numbers_if_truth, zip(*rows, strict=True)), strict=True))
    try:
        return _converted(rows)
    except ValueError:
        raise Refused(_complaint(rows, header, columns)) from None


def _converted(rows: Sequence[Sequence[str]]) -> np.ndarray:
    """Return entries as numbers, if each of them `_is_number`."""
    if any("_" in "".join(row) for row in rows):
        raise ValueError("an underscore is no part of a number")
    return np.array(rows, dtype=np.float64)


def _numbers_if_truth(column: Sequence[str]) -> Sequence[str]:
    if not _are_truth_values(column):
        return column
    return [TRUTH.get(entry.strip().lower(), entry) for entry in column]


def _numbered_if_text(column: Sequence[str]) -> Sequence[str]:
    entries = [entry.strip() for entry in column]
    mixed = any(not entry or _is_number(entry) for entry in entries)
    return column if mixed else [str(number) for number in numbered(entries)]


def _complaint(rows: Sequence[Sequence[str]], header: Sequence[str], columns: Columns) -> str:
    """Describe the entries that are not numbers, with advice."""
    wrong = {
        index: [number for number, row in enumerate(rows) if not _is_number(row[index])] for index in range(len(header))
    }
    first = [(numbers[0], index) for index, numbers in wrong.items() if numbers]
    commas = [(number, index) for number, index in first if _has_decimal_comma(rows[number][index])]
    if commas:
        number, index = min(commas)
        entry = rows[number][index].strip()
        mend = "write decimal points, and thousands without commas"
        return f"has commas in numbers (row {number + 1}: {entry!r}): {mend}"
    text = [index for index, numbers in wrong.items() if numbers and _is_text([row[index] for row in rows])]
    if text:
        number = next(row for row in wrong[text[0]] if rows[row][text[0]].strip().lower() not in GAPS)
        return _complaint_about_text(rows[number][text[0]].strip(), number, [header[index] for index in text], columns)
    count = sum(map(len, wrong.values()))
    number, index = min(first)
    entry, where = rows[number][index].strip(), f"row {number + 1} of column {header[index]!r}"
    missing = any(rows[row][index].strip().lower() in GAPS for index, found in wrong.items() for row in found)
    more = [] if columns.purpose == "model" else [f"leave columns out as with --drop {in_option([header[index]])}"]
    if count > 1:
        others = ["correct them", "leave them empty", "remove such rows", *more]
        mend = how_to_fill(columns.purpose, *more) if missing else either(others)
        return f"has {count} entries that are no numbers, the first in {where} ({entry!r}): {mend}"
    if not entry:
        return f"has an empty entry in {where}: {how_to_fill(columns.purpose)}"
    return f"has an entry that is no number in {where}: {entry!r}"


def _has_decimal_comma(entry: str) -> bool:
    return "," in entry and _is_number(_with_decimal_point(entry))


def _with_decimal_point(entry: str) -> str:
    return (entry.replace(".", "") if GROUPED.fullmatch(entry.strip()) else entry).replace(",", ".")


def _complaint_about_text(entry: str, number: int, names: Sequence[str], columns: Columns) -> str:
    import shlex

    one = len(names) == 1
    told = f"has text in {'column' if one else 'columns'} {listed(names)} (row {number + 1}: {entry!r})"
    if columns.only is not None and columns.purpose == "model":
        return f"{told}, where the model was trained on numbers"
    return (
        f"{told}: leave {'it' if one else 'them'} out with --drop {in_option(names)}, use {'it' if one else 'one'} as "
        f"row names with --id {shlex.quote(names[0])}, or write classes as numbers"
    )
