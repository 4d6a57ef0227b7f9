"""Packed stores: finished runs in one small, read-only file for a repository, as compressed JSON with checksums.

The first line describes the file; each further one is a run with its checksum from the store. `drkm.runs.store.Store`
opens such a file like a read-only store, so that it can be reported on and merged.
"""

from __future__ import annotations

import json
import lzma
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from drkm.files import write_whole
from drkm.runs._rows import COLUMNS, Row, checksum
from drkm.runs.configuration import parse_object

FORMAT = 1
#: maximum unpacked bytes: a small file can unpack to more than the memory
MOST = 1 << 28
#: environment fields that are removed: the name of the machine is private
PRIVATE = ("host",)


def pack(rows: Iterable[Row], path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
    """Write finished runs, as returned by `drkm.runs.store.Store.finished`.

    Parameters
    ----------
    rows : iterable of mapping
    path : path
        Target file, written atomically; the same runs give the same bytes.
    about : mapping
        Description of all runs, as JSON values.
    """
    lines = []
    for row in sorted(rows, key=lambda one: (one["configuration"], one["key"])):
        environment = {k: v for k, v in json.loads(row["environment"]).items() if k not in PRIVATE}
        values = [(_line(environment) if name == "environment" else row[name]) for name in COLUMNS]
        lines.append(_line([*values, checksum(*values)]))
    head = _line({"drkm": FORMAT, "about": dict(about), "runs": len(lines)})
    data = lzma.compress("\n".join([head, *lines]).encode(), check=lzma.CHECK_SHA256, preset=9)
    write_whole(Path(path), lambda file: file.write(data))


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_packed(path: Path) -> bool:
    """Whether a file is packed, judged by its name, which ends in .xz.

    The file must not be opened to check: a process that closes the file of a database releases all its locks, including
    those of its other connections, and two processes could then write at once.
    """
    return path.suffix == ".xz" and path.is_file()


def unpack_into(connection: sqlite3.Connection, path: Path) -> None:
    """Insert the runs of a packed file into the table of a new store."""
    lines = _lines(path)
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    statement = f"INSERT INTO runs ({', '.join(COLUMNS)}, checksum) VALUES ({marks})"
    try:
        connection.executemany(statement, map(json.loads, lines[1:]))
    except (ValueError, OverflowError, RecursionError, sqlite3.Error) as error:
        raise ValueError(f"store: {path} is damaged (a line is not a run)") from error


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the description in a packed file."""
    found = parse_object(_lines(Path(path))[0], f"store: {path}: its first line").get("about")
    return found if isinstance(found, dict) else {}


def _lines(path: Path) -> list[str]:
    unpacker = lzma.LZMADecompressor(memlimit=MOST)
    try:
        data = unpacker.decompress(path.read_bytes(), MOST)
        whole = unpacker.eof
        lines = data.decode().split("\n")
        head = parse_object(lines[0], "head")
        counted = head.get("runs") == len(lines) - 1
    except (lzma.LZMAError, ValueError) as error:
        raise ValueError(f"store: {path} is damaged, or larger than {MOST >> 20} MiB when unpacked") from error
    if not whole or not counted:
        raise ValueError(f"store: {path} is damaged, or larger than {MOST >> 20} MiB when unpacked")
    if not isinstance(head.get("drkm"), int) or head["drkm"] > FORMAT:
        raise ValueError(f"store: {path} was written by a newer drkm: upgrade drkm")
    return lines
