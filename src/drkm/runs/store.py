"""The store of runs in one SQLite file: leases while they run, one transaction when they end."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drkm._version import __version__
from drkm.runs._rows import COLUMNS, NAMES, SEAL, Row, flaw
from drkm.runs._sqlite import connect, has_checksums, is_damage, sentences, transaction
from drkm.runs.attempt import Attempt
from drkm.runs.configuration import Configuration, Fields, Results, parse_object
from drkm.runs.lease import LEASE_SECONDS, is_dead
from drkm.runs.tasks import KeyedRun, TaskTable

#: seconds over which the rate of a sweep is measured
RECENT = 600.0
_CHUNK = 500


@dataclass(frozen=True)
class Counts:
    """The progress of the runs of one task.

    Attributes
    ----------
    task : str
    done, failed : int
    running, interrupted : int
        Leased by a runner that is alive, or by one that is not.
    recent : int
        Number of runs done in the last `RECENT` seconds.
    seconds : float
        Total computing time of finished runs.
    """

    task: str
    done: int
    failed: int
    running: int
    interrupted: int
    recent: int
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A run that failed."""

    key: str
    configuration: Configuration
    traceback: str
    finished: float
    attempts: int

    @property
    def reason(self) -> str:
        """The last line of the traceback: what was raised."""
        lines = [line for line in self.traceback.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class Store:
    """A file of runs that any number of processes on one machine can read and write.

    Parameters
    ----------
    path : path
        The file, created if there is none, unless `readonly`.
    tasks : TaskTable, optional
        Tasks of runs that are computed or looked up by configuration; counts and failures need none.
    readonly : bool
        Whether to open the store read-only, also on a read-only disk.
    """

    def __init__(self, path: str | os.PathLike[str], tasks: TaskTable | None = None, *, readonly: bool = False) -> None:
        self.path, self.tasks = Path(path), tasks or TaskTable("")
        self._connection = connect(self.path, write=not readonly)
        self._sealed = has_checksums(self._connection)
        #: the state of the file at the last check
        self._checked: Any = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # Methods for runners.

    def claim(self, run: KeyedRun, owner: str, seconds: float = LEASE_SECONDS, *, retry_before: float = 0.0) -> bool:
        """Lease a run if it is free; exactly one of several callers gets True.

        Parameters
        ----------
        run : KeyedRun
        owner : str
            The caller, see `drkm.runs.lease`.
        seconds : float
            Duration of the lease without `renew`.
        retry_before : float
            Runs that failed before this time (of `time.time`) may be leased again.
        """
        now = time.time()
        rows = self._write(
            "INSERT INTO runs (key, task, configuration, data, revision, version, status, owner, expires, attempts,"
            " started) VALUES (:key, :task, :configuration, :data, :revision, :version, 'leased', :owner, :expires, 1,"
            " :now) ON CONFLICT (key) DO UPDATE SET status = 'leased', owner = :owner, expires = :expires,"
            " attempts = attempts + 1, started = :now, finished = NULL, seconds = NULL, traceback = NULL"
            " WHERE (status = 'leased' AND expires < :now) OR (status = 'failed' AND finished < :retry_before)",
            {
                "key": run.key,
                "task": run.configuration.task,
                "configuration": run.configuration.canonical(),
                "data": run.data,
                "revision": run.revision,
                "version": run.version,
                "owner": owner,
                "expires": now + seconds,
                "now": now,
                "retry_before": retry_before,
            },
        )
        return bool(rows)

    def renew(self, owner: str, seconds: float = LEASE_SECONDS) -> None:
        """Extend all leases of a runner."""
        self._write("UPDATE runs SET expires = ? WHERE status = 'leased' AND owner = ?", (time.time() + seconds, owner))

    def finish(self, key: str, owner: str, attempt: Attempt) -> bool:
        """Record the outcome of a run in one transaction; True if it was accepted.

        A result is accepted even after the lease expired, unless another runner has finished the run; a failure is
        accepted only from the current owner.
        """
        allowed = "status <> 'done'" if attempt.status == "done" else "status = 'leased' AND owner = :owner"
        values = {
            "status": attempt.status,
            "result": attempt.result or None,
            "traceback": attempt.traceback or None,
            "seconds": attempt.seconds,
            "environment": attempt.environment,
            "now": time.time(),
            "key": key,
            "owner": owner,
        }
        rows = self._write(
            "UPDATE runs SET status = :status, result = :result, traceback = :traceback, seconds = :seconds,"
            " environment = :environment, finished = :now, owner = NULL, expires = NULL"
            f" WHERE key = :key AND {allowed}",
            values,
        )
        return bool(rows)

    def release(self, owner: str) -> None:
        """Release the unfinished runs of a runner."""
        self._all("DELETE FROM runs WHERE status = 'leased' AND owner = ?", (owner,))

    def release_dead(self) -> None:
        """End the leases of dead runners on this machine."""
        owners = self._all("SELECT DISTINCT owner FROM runs WHERE status = 'leased' AND expires >= ?", (time.time(),))
        for (owner,) in owners:
            if is_dead(owner):
                self._write("UPDATE runs SET expires = 0 WHERE status = 'leased' AND owner = ?", (owner,))

    def states(self, keys: Iterable[str]) -> dict[str, str]:
        """Return "done", "failed", "leased" or "expired" for the runs that the store knows."""
        now = time.time()
        rows = self._select("key, status, expires", keys)
        return {key: "expired" if status == "leased" and expires < now else status for key, status, expires in rows}

    # Methods for readers.

    def results(self, configurations: Iterable[Configuration]) -> Results:
        """Return the results of the finished runs.

        If the data of a run are not on this machine, a result of the same configuration and code is accepted: the store
        may come from the machine that has them.
        """
        self.check()
        wanted = self.keys(configurations)
        rows = self._whole_rows(self._select(self._columns, wanted, "AND status = 'done'"))
        return Results((wanted[row["key"]], self.result(row), row["seconds"]) for row in rows)

    def keys(self, configurations: Iterable[Configuration]) -> dict[str, Configuration]:
        """Return runs by the keys of their results on this machine."""
        found = {self._known_key(configuration): configuration for configuration in configurations}
        return {key: configuration for key, configuration in found.items() if key is not None}

    def unfinished(self, configurations: Iterable[Configuration]) -> list[Configuration]:
        """Return the runs that are neither done nor failed."""
        self.check()
        keys = {configuration: self._known_key(configuration) for configuration in configurations}
        states = self.states(key for key in keys.values() if key is not None)
        return [run for run, key in keys.items() if key is None or states.get(key) not in ("done", "failed")]

    def failures(self, configurations: Iterable[Configuration] | None = None) -> list[Failure]:
        """Return failed runs, the latest first: all, or those of some configurations."""
        self.check()
        rows = self._whole_rows(
            self._all(f"SELECT {self._columns} FROM runs WHERE status = 'failed' ORDER BY finished DESC, key")
        )
        failures = [
            Failure(row["key"], self.configuration(row), row["traceback"] or "", row["finished"], row["attempts"])
            for row in rows
        ]
        if configurations is None:
            return failures
        keys = {self._known_key(configuration) for configuration in configurations}
        return [failure for failure in failures if failure.key in keys]

    def finished(self) -> tuple[list[Row], int, bool]:
        """Return all finished or failed runs that can be read, the number of damaged ones, and whether all were read.

        Behind an unreadable page are more runs: those are read backwards from the last key.
        """
        found, whole = self._readable("ORDER BY key")
        if not whole:
            found |= self._readable("ORDER BY key DESC")[0]
        rows, flaws = self._sorted_out(found.values())
        return [row for row in rows if row["status"] != "leased"], len(flaws), whole

    def _readable(self, order: str) -> tuple[dict[Any, tuple[Any, ...]], bool]:
        """Return rows by key in an order of keys until one cannot be read, and whether all could."""
        found: dict[Any, tuple[Any, ...]] = {}
        with sentences(self.path):
            try:
                for row in self._connection.execute(f"SELECT {self._columns} FROM runs {order}"):
                    found[row[0]] = row
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                return found, False
        return found, True

    def check(self) -> None:
        """Refuse a damaged store, with an error that says how to save the intact runs."""
        state = self._one("PRAGMA data_version"), self._connection.total_changes
        if state == self._checked:
            return
        (verdict,) = self._one("PRAGMA integrity_check(1)")
        if verdict != "ok":
            raise ValueError(f"store: {self.path} is damaged ({verdict.splitlines()[-1]}){self._rescue}")
        self._whole_rows(self._all(f"SELECT {self._columns} FROM runs"))
        self._checked = state

    def counts(self) -> list[Counts]:
        """Return the progress of the runs, one entry per task."""
        self.check()
        now = time.time()
        leases: dict[str, list[bool]] = {}
        for task, owner, expires in self._all("SELECT task, owner, expires FROM runs WHERE status = 'leased'"):
            leases.setdefault(task, []).append(expires >= now and not is_dead(owner))
        rows = self._all(
            "SELECT task, sum(status = 'done'), sum(status = 'failed'), sum(status = 'done' AND finished > ?),"
            " coalesce(sum(CASE WHEN status = 'done' THEN seconds END), 0) FROM runs GROUP BY task ORDER BY task",
            (now - RECENT,),
        )
        counts = []
        for task, done, failed, recent, seconds in rows:
            alive = leases.get(task, [])
            counts.append(Counts(task, done, failed, sum(alive), len(alive) - sum(alive), recent, seconds))
        return counts

    def environments(self, configurations: Iterable[Configuration] | None = None) -> list[dict[str, Any]]:
        """Return the environments of finished runs with their counts as "runs", the most frequent first."""
        self.check()
        asked = None if configurations is None else self.keys(configurations)
        rows = self._whole_rows(self._all(f"SELECT {self._columns} FROM runs WHERE status = 'done'"))
        texts = Counter(row["environment"] for row in rows if asked is None or row["key"] in asked)
        frequent = sorted(texts.items(), key=lambda entry: (-entry[1], entry[0]))
        about = f"store: {self.path}: where runs were made"
        return [{**parse_object(text, about), "runs": count} for text, count in frequent]

    def _known_key(self, configuration: Configuration) -> str | None:
        task = self.tasks.task_of(configuration)
        try:
            return self.tasks.identify(configuration).key
        except task.absent:
            row = self._one(
                "SELECT key FROM runs WHERE configuration = ? AND revision = ? AND version = ? AND status = 'done'"
                " ORDER BY finished DESC LIMIT 1",
                (configuration.canonical(), task.revision, __version__),
            )
            return row[0] if row else None

    # Rows.

    def configuration(self, row: Row) -> Configuration:
        """Return the configuration of a run."""
        return Configuration.from_json(row["configuration"], f"store: {self.path}: the configuration of a run")

    def result(self, row: Row) -> Fields:
        """Return the result of a finished run, after the check of its task."""
        about = f"store: {self.path}: the result of {row['configuration']}"
        found = Fields.from_json(row["result"], about)
        task = self.tasks.tasks.get(row["task"])
        if task is not None:
            try:
                task.check(found, self.configuration(row).parameters)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{about}: {error}") from error
        return found

    @property
    def _columns(self) -> str:
        return f"{NAMES}, checksum" if self._sealed else f"{NAMES}, NULL"

    @property
    def _rescue(self) -> str:
        return f"; 'drkm merge NEW {self.path}' copies the runs that are whole"

    def _sorted_out(self, rows: Iterable[tuple[Any, ...]]) -> tuple[list[Row], list[str]]:
        """Return the intact rows, and what is wrong with each of the others."""
        whole: list[Row] = []
        flaws = []
        for values in rows:
            row = dict(zip((*COLUMNS, "checksum"), values, strict=True))
            if why := flaw(row, sealed=self._sealed):
                flaws.append(f"run {row['key']!r:.14}: {why}")
            else:
                whole.append(row)
        return whole, flaws

    def _whole_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Row]:
        whole, flaws = self._sorted_out(rows)
        if flaws:
            raise ValueError(
                f"store: {self.path} is damaged: {len(flaws)} of {len(rows)} runs have changed since they were written"
                f" ({flaws[0]}){self._rescue}"
            )
        return whole

    # SQLite.

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside one transaction."""
        with sentences(self.path), transaction(self._connection):
            yield self._connection

    def _write(self, statement: str, values: Any) -> list[tuple[str]]:
        """Change runs, update their checksums, and return their keys."""
        with self.writing() as connection:
            keys = connection.execute(f"{statement} RETURNING key", values).fetchall()
            connection.executemany(f"{SEAL} WHERE key = ?", keys)
        return keys

    def _one(self, statement: str, values: Any = ()) -> Any:
        rows = self._all(statement, values)
        return rows[0] if rows else None

    def _all(self, statement: str, values: Any = ()) -> list[Any]:
        with sentences(self.path):
            return self._connection.execute(statement, values).fetchall()

    def _select(self, columns: str, keys: Iterable[str], condition: str = "") -> list[Any]:
        """Return columns of the runs with these keys, in batches, because SQLite limits the number of values."""
        every: Sequence[str] = list(keys)
        rows: list[Any] = []
        for start in range(0, len(every), _CHUNK):
            some = every[start : start + _CHUNK]
            marks = ",".join("?" * len(some))
            rows += self._all(f"SELECT {columns} FROM runs WHERE key IN ({marks}) {condition}", some)
        return rows
