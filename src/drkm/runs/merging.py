"""Putting runs that were made elsewhere into a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drkm.runs._rows import COLUMNS, NAMES, SEAL
from drkm.runs.configuration import Configuration
from drkm.runs.store import Store

_INSERT = f"INSERT OR REPLACE INTO runs ({NAMES}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})"


@dataclass(frozen=True)
class Disagreement:
    """A run that both stores have done, with different results; the result that was there is kept."""

    key: str
    configuration: Configuration
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Merged:
    """What a merge did.

    Attributes
    ----------
    added, shared : int
        Runs that came in, and runs that both stores had.
    differences : tuple of Difference
        Those of the latter whose results differ.
    damaged : int
        Runs that were left out because they are not as they were written.
    """

    added: int
    shared: int
    differences: tuple[Disagreement, ...]
    damaged: int = 0


def merge(store: Store, other: str | os.PathLike[str]) -> Merged:
    """Copy the finished runs of another store into this one, all of them or none.

    A result replaces a failure or a lease, never another result; a failure is only copied where there is nothing.
    Leases stay where they are, and so do runs that are damaged.

    Parameters
    ----------
    store : Store
        Receives the runs.
    other : path
        The file that they come from; it is only read.
    """
    store.check()
    added, shared, differences = 0, 0, []
    with Store(other, readonly=True) as source, store.writing() as connection:
        rows, damaged = source.finished()
        for run in rows:
            here = connection.execute("SELECT status, result FROM runs WHERE key = ?", (run["key"],)).fetchone()
            if here is None or (run["status"] == "done" and here[0] != "done"):
                connection.execute(_INSERT, run)
                connection.execute(f"{SEAL} WHERE key = ?", (run["key"],))
                added += 1
                continue
            shared += 1
            if run["status"] == here[0] == "done":
                ours = store.result({**run, "result": here[1]})
                if fields := differing(ours, source.result(run)):
                    differences.append(Disagreement(run["key"], source.configuration(run), fields))
    return Merged(added, shared, tuple(differences), damaged)


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that differ between two results, save times: names that end in "_s"."""
    names = sorted(set(one) | set(two))
    return tuple(name for name in names if not name.endswith("_s") and one.get(name) != two.get(name))
