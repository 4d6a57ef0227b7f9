"""Putting runs that were made elsewhere into a store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drkm.runs.configuration import Configuration
from drkm.runs.store import Store

_COLUMNS = (
    "key",
    "task",
    "configuration",
    "data",
    "revision",
    "version",
    "status",
    "attempts",
    "started",
    "finished",
    "seconds",
    "result",
    "traceback",
    "environment",
)


@dataclass(frozen=True)
class Disagreement:
    """A run that both stores have done, with different results; the result that was there is kept."""

    key: str
    configuration: Configuration
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Merged:
    """What a merge did: runs that came in, runs that both stores had, and those of them whose results differ."""

    added: int
    shared: int
    differences: tuple[Disagreement, ...]


def merge(store: Store, other: str | os.PathLike[str]) -> Merged:
    """Copy the finished runs of another store into this one, all of them or none.

    A result replaces a failure or a lease, never another result; a failure is only copied where there is nothing.
    Leases stay where they are.

    Parameters
    ----------
    store : Store
        Receives the runs.
    other : path
        The file that they come from; it is only read.
    """
    with Store(other, readonly=True) as source:
        rows = source.finished(_COLUMNS)
    insert = f"INSERT OR REPLACE INTO runs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
    added, shared, differences = 0, 0, []
    with store.writing() as connection:
        for row in rows:
            run = dict(zip(_COLUMNS, row, strict=True))
            here = connection.execute("SELECT status, result FROM runs WHERE key = ?", (run["key"],)).fetchone()
            if here is None or (run["status"] == "done" and here[0] != "done"):
                connection.execute(insert, row)
                added += 1
                continue
            shared += 1
            if run["status"] == here[0] == "done":
                fields = differing(json.loads(here[1]), json.loads(run["result"]))
                if fields:
                    differences.append(Disagreement(run["key"], Configuration.from_json(run["configuration"]), fields))
    return Merged(added, shared, tuple(differences))


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that differ between two results, save times: names that end in "_s"."""
    names = sorted(set(one) | set(two))
    return tuple(name for name in names if not name.endswith("_s") and one.get(name) != two.get(name))
