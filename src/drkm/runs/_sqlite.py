"""Opening of the SQLite file of a store: ownership, format, and error messages."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from drkm.runs._rows import SEAL, checksum
from drkm.runs.packing import is_packed, unpack_into

#: "drkm" as SQLite's application ID in the header of a file
APPLICATION = int.from_bytes(b"drkm", "big")
#: format number, raised whenever the table changes
FORMAT = 2
#: seconds that a writer waits for another one, which holds the file for less than a millisecond
PATIENCE = 60.0
#: the smallest page of a database
_LEAST_BYTES = 512

#: SQLite's result codes → the error that is raised instead
_SENTENCES: dict[int, tuple[type[Exception], str]] = {
    sqlite3.SQLITE_NOTADB: (ValueError, "{path} is not a drkm store"),
    sqlite3.SQLITE_CORRUPT: (ValueError, "{path} is damaged ({said})"),
    sqlite3.SQLITE_FULL: (OSError, "no room left on the disk of {path}"),
    sqlite3.SQLITE_READONLY: (OSError, "{path} cannot be written: the file, its folder or its disk is read-only"),
    sqlite3.SQLITE_CANTOPEN: (OSError, "{path} cannot be opened or made: its folder may be missing or read-only"),
    sqlite3.SQLITE_BUSY: (OSError, f"{{path}} has been locked by another program for {PATIENCE:.0f} s"),
}

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key           TEXT PRIMARY KEY,
    task          TEXT NOT NULL,
    configuration TEXT NOT NULL,
    data          TEXT NOT NULL,
    revision      INTEGER NOT NULL,
    version       TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('leased', 'done', 'failed')),
    owner         TEXT,
    expires       REAL,
    attempts      INTEGER NOT NULL,
    started       REAL NOT NULL,
    finished      REAL,
    seconds       REAL,
    result        TEXT,
    traceback     TEXT,
    environment   TEXT,
    checksum      TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_configuration ON runs (configuration);
CREATE INDEX IF NOT EXISTS runs_by_lease ON runs (owner) WHERE status = 'leased';
"""


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """Connect to a store in autocommit mode; with `write`, create the file if there is none.

    Raises
    ------
    ValueError
        If the file is not a store, or was written by a newer version.
    OSError
        If it cannot be read or written.
    """
    with sentences(path):
        if path.is_dir():
            raise OSError(f"store: {path} is a folder, a store is a file")
        if not write and not path.is_file():
            raise FileNotFoundError(f"store: there is no file {path}; 'drkm reproduce' makes one")
        if is_packed(path):
            if write:
                raise ValueError(f"store: {path} is packed and read-only; 'drkm merge NEW {path}' makes a store of it")
            return _open_packed(path)
        # SQLite would treat a truncated file as a new one.
        if path.is_file() and 0 < path.stat().st_size < _LEAST_BYTES:
            raise ValueError(f"store: {path} is not a drkm store")
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
        return _open(path, "mode=rwc", write=True) if write else _open_to_read(path)


def _open(path: Path, options: str, *, write: bool = False) -> sqlite3.Connection:
    address = f"file:{quote(str(path))}?{options}"
    connection = sqlite3.connect(address, timeout=PATIENCE, isolation_level=None, uri=True)
    connection.create_function("checksum", -1, checksum, deterministic=True)
    # Invalid text is one damaged run, not a failure of all reading.
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    try:
        _prepare(connection, path, write=write)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_packed(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("checksum", -1, checksum, deterministic=True)
    try:
        _upgrade(connection)
        with transaction(connection):
            unpack_into(connection, path)
        connection.execute("PRAGMA query_only = TRUE")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_to_read(path: Path) -> sqlite3.Connection:
    # In WAL mode SQLite keeps two more files, and removes them only with write access.
    try:
        connection = _open(path, "mode=rw")
    except sqlite3.Error as error:
        log = path.with_name(path.name + "-wal")
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or (
            log.exists() and log.stat().st_size
        ):
            raise
        # A read-only disk without a log of a writer: the file is complete and does not change.
        return _open(path, "mode=ro&immutable=1")
    connection.execute("PRAGMA query_only = TRUE")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, write: bool) -> None:
    """Check the application ID before anything is changed, and set up a new file."""
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION and not (empty and application == version == 0):
        raise ValueError(f"store: {path} is not a drkm store")
    if version > FORMAT:
        raise ValueError(
            f"store: {path} was written by a newer drkm (format {version}, this one reads up to {FORMAT}): upgrade drkm"
        )
    if not empty and (version < 1 or has_checksums(connection) != (version > 1)):
        raise ValueError(f"store: {path} is damaged (its table is not that of format {version})")
    # Check the structure of a possibly damaged file before using it.
    connection.execute("PRAGMA cell_size_check = TRUE")
    if not write:
        if empty:
            raise ValueError(f"store: {path} is not a drkm store")
        return
    _switch_to_wal(connection)
    # A commit without fsync survives the process; a power cut can lose the last runs, but never the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    if version < FORMAT:
        _upgrade(connection)


def _upgrade(connection: sqlite3.Connection) -> None:
    """Set up a new file, or add the missing checksums of an old one."""
    with transaction(connection):
        # Another process may have done it meanwhile.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in _SCHEMA.strip().split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        elif version == 1:
            connection.execute("ALTER TABLE runs ADD COLUMN checksum TEXT")
            connection.execute(SEAL)
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def has_checksums(connection: sqlite3.Connection) -> bool:
    """Whether runs have checksums, which the first format lacks."""
    return "checksum" in (row[1] for row in connection.execute("PRAGMA table_info(runs)"))


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # The switch needs exclusive access for a moment, for which SQLite does not wait.
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction with the write lock from the beginning, which avoids deadlocks."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite has already rolled back if the disk is full.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into error messages that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        kind, sentence = _SENTENCES.get(_code(error), (OSError, "{path} cannot be read or written ({said})"))
        raise kind("store: " + sentence.format(path=path, said=" ".join(str(error).split()))) from error
    except UnicodeDecodeError as error:
        # SQLite's message may quote the content of the file.
        raise ValueError(f"store: {path} is damaged (its table is not that of a store)") from error
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(f"store: {path} cannot be opened or made: {error.strerror}") from error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the content of the file is invalid."""
    return _code(error) == sqlite3.SQLITE_CORRUPT


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code of an error."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
