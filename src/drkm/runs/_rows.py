"""Rows of a store: the columns of a run, its checksum, and the detection of damaged rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from drkm.runs.configuration import canonical, result_key

Row = Mapping[str, Any]

_Kinds = dict[str, tuple[type, ...]]
_NOTHING = type(None)

#: columns that identify a run, and its status
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
#: columns of the lease, until the run is finished
_LEASED: _Kinds = {"owner": (str,), "expires": (float,)}
#: columns of the outcome
_FINISHED: _Kinds = {
    "finished": (float,),
    "seconds": (float,),
    "result": (str, _NOTHING),
    "traceback": (str, _NOTHING),
    "environment": (str,),
}
COLUMNS = (*_ALWAYS, *_LEASED, *_FINISHED)
#: Python types of all columns, by status
_KINDS: dict[str, _Kinds] = {
    # A run that is computed again keeps parts of its earlier outcome.
    "leased": _ALWAYS | _LEASED | {name: (*kinds, _NOTHING) for name, kinds in _FINISHED.items()},
    **dict.fromkeys(("done", "failed"), _ALWAYS | dict.fromkeys(_LEASED, (_NOTHING,)) | _FINISHED),
}

NAMES = ", ".join(COLUMNS)
#: statement that sets checksums, by the SQL function `checksum` of a connection
SEAL = f"UPDATE runs SET checksum = checksum({NAMES})"


def checksum(*values: Any) -> str:
    """Return a hash of the values of a row."""
    # A damaged row may have bytes in place of text.
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()


def flaw(row: Row, *, sealed: bool) -> str | None:
    """Return what is wrong with a row, or None if it is intact.

    Parameters
    ----------
    row : mapping
        All columns and the checksum.
    sealed : bool
        Whether runs have checksums; stores of the first format have none.
    """
    for name, kinds in _KINDS.get(row["status"], {}).items():
        if not isinstance(row[name], kinds):
            return f"its {name} is of the wrong type"
    if sealed and row["checksum"] != checksum(*(row[name] for name in COLUMNS)):
        return "its checksum does not match"
    if row["status"] not in _KINDS:
        return "its status is unknown"
    if row["key"] != result_key(row["configuration"], row["data"], row["version"], row["revision"]):
        return "its key is not that of its configuration"
    # The last field of canonical JSON: parsing it would take most of the time.
    if not row["configuration"].endswith(f'"task":{canonical(row["task"])}}}'):
        return "its task is not that of its configuration"
    return None
