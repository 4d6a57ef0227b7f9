"""Merging of stores."""

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
class Difference:
    """A run with different results in both stores; the existing result is kept."""

    key: str
    configuration: Configuration
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    Attributes
    ----------
    added, shared : int
        Number of added runs, and of runs that both stores had.
    differences : tuple of Difference
        Runs of both stores whose results differ.
    damaged : int
        Number of damaged runs, which were left out.
    whole : bool
        Whether all of the file could be read; otherwise an unknown number of runs is missing.
    """

    added: int
    shared: int
    differences: tuple[Difference, ...]
    damaged: int = 0
    whole: bool = True


def merge(store: Store, other: str | os.PathLike[str]) -> Merged:
    """Copy the finished runs of another store into this one, all or none.

    A result replaces a failure or a lease, but never another result; a failure is copied only if there is nothing.
    Leases and damaged runs are not copied.

    Parameters
    ----------
    store : Store
        Receives the runs.
    other : path
        The source file, which is only read.
    """
    store.check()
    added, shared, differences = 0, 0, []
    with Store(other, readonly=True) as source, store.writing() as connection:
        rows, damaged, whole = source.finished()
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
                    differences.append(Difference(run["key"], source.configuration(run), fields))
    return Merged(added, shared, tuple(differences), damaged, whole)


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that differ between two results, except times, whose names end in "_s"."""
    names = sorted(set(one) | set(two))
    return tuple(name for name in names if not name.endswith("_s") and one.get(name) != two.get(name))
