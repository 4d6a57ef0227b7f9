"""Rows of a store: what is kept of a run, its checksum, and what is wrong with a row that is not as it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from drkm.runs.configuration import canonical, result_key

Row = Mapping[str, Any]

#: what is kept of a finished run, with the types it has in Python; the checksum is of all of it
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "key": str,
    "task": str,
    "configuration": str,
    "data": str,
    "revision": int,
    "version": str,
    "status": str,
    "attempts": int,
    "started": float,
    "finished": float,
    "seconds": float,
    "result": (str, type(None)),
    "traceback": (str, type(None)),
    "environment": str,
}
#: columns of a run that is leased, which changes until it is finished: its key is all the checksum it has
_LEASED = dict.fromkeys(("finished", "seconds", "result", "traceback", "environment"), (str, float, type(None)))

NAMES = ", ".join(COLUMNS)
#: gives finished runs their checksums, by the function that a connection calls `checksum`
SEAL = f"UPDATE runs SET checksum = checksum({NAMES}) WHERE status <> 'leased'"


def checksum(*values: Any) -> str:
    """Return a hash of the values of a row."""
    # A damaged row may have bytes where there was text.
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()


def flaw(row: Row, *, sealed: bool) -> str | None:
    """Return what is wrong with a row, None if it is as it was written.

    Parameters
    ----------
    row : mapping
        All columns and the checksum.
    sealed : bool
        Whether finished runs have checksums; stores of the first format have none.
    """
    leased = row["status"] == "leased"
    types = {**COLUMNS, **(_LEASED if leased else {})}
    for name, kind in types.items():
        if not isinstance(row[name], kind):
            return f"its {name} is not what it can be"
    if row["key"] != result_key(row["configuration"], row["data"], row["version"], row["revision"]):
        return "its key is not that of its configuration"
    # The last field of canonical JSON: parsing it would take most of the time.
    if not row["configuration"].endswith(f'"task":{canonical(row["task"])}}}'):
        return "its task is not that of its configuration"
    if row["status"] not in ("leased", "done", "failed"):
        return f"its status is {row['status']!r}"
    if sealed and row["checksum"] != (None if leased else checksum(*(row[name] for name in COLUMNS))):
        return "its checksum is that of something else"
    return None
