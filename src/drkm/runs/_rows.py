"""Rows of a store: what is kept of a run, its checksum, and what is wrong with a row that is not as it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from drkm.runs.configuration import canonical, result_key

Row = Mapping[str, Any]

_Kinds = dict[str, tuple[type, ...]]
_NOTHING = type(None)

#: what a run is known by, and how it stands
_ALWAYS: _Kinds = {
    "key": (str,),
    "task": (str,),
    "configuration": (str,),
    "data": (str,),
    "revision": (int,),
    "version": (str,),
    "status": (str,),
    "attempts": (int,),
    "started": (float,),
}
#: who has it, until it is finished
_LEASED: _Kinds = {"owner": (str,), "expires": (float,)}
#: what came of it
_FINISHED: _Kinds = {
    "finished": (float,),
    "seconds": (float,),
    "result": (str, _NOTHING),
    "traceback": (str, _NOTHING),
    "environment": (str,),
}
COLUMNS = (*_ALWAYS, *_LEASED, *_FINISHED)
#: the types of all columns, in Python, by status
_KINDS: dict[str, _Kinds] = {
    # One that is computed again keeps some of what came of it before.
    "leased": _ALWAYS | _LEASED | {name: (*kinds, _NOTHING) for name, kinds in _FINISHED.items()},
    **dict.fromkeys(("done", "failed"), _ALWAYS | dict.fromkeys(_LEASED, (_NOTHING,)) | _FINISHED),
}

NAMES = ", ".join(COLUMNS)
#: gives runs their checksums, by the function that a connection calls `checksum`
SEAL = f"UPDATE runs SET checksum = checksum({NAMES})"


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
        Whether runs have checksums; those in stores of the first format have none.
    """
    for name, kinds in _KINDS.get(row["status"], {}).items():
        if not isinstance(row[name], kinds):
            return f"its {name} is not what it can be"
    if sealed and row["checksum"] != checksum(*(row[name] for name in COLUMNS)):
        return "its checksum is that of something else"
    if row["status"] not in _KINDS:
        return "its status is none"
    if row["key"] != result_key(row["configuration"], row["data"], row["version"], row["revision"]):
        return "its key is not that of its configuration"
    # The last field of canonical JSON: parsing it would take most of the time.
    if not row["configuration"].endswith(f'"task":{canonical(row["task"])}}}'):
        return "its task is not that of its configuration"
    return None
