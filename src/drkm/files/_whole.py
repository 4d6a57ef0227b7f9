"""Atomic writing of files and folders, and the names that errors call them by."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows, where temporary files of killed processes stay
    fcntl = None

#: hexadecimal digits in the name of a temporary file
TOKEN = 16


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> Path:
    """Let `write` fill a temporary file beside `path`, and rename it when it is complete."""
    target = Path(path)
    try:
        # Not tempfile, whose files only their owner may read.
        with _neighbour(target, lambda temporary: temporary.touch(exist_ok=False)) as temporary:
            with temporary.open("r+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
    except OSError as error:
        raise _refused(target, error) from error
    return target


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the error of `write_whole` before any work, if no file can be created; permissions are unreliable."""
    target = Path(path)
    try:
        with _neighbour(target, lambda temporary: temporary.touch(exist_ok=False)) as temporary:
            temporary.unlink()
    except OSError as error:
        raise _refused(target, error) from error


def write_whole_folder(path: str | os.PathLike[str], fill: Callable[[Path], object]) -> Path:
    """Let `fill` write files to a temporary folder beside `path`, and rename it; `path` may be an empty folder."""
    target = Path(path)
    try:
        with _neighbour(target, Path.mkdir) as temporary:
            fill(temporary)
            # Windows does not rename onto an existing folder, even an empty one.
            if target.is_dir():
                target.rmdir()
            os.replace(temporary, target)
    except OSError as error:
        raise _refused(target, error) from error
    return target


@contextmanager
def _neighbour(target: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """Make a temporary file or folder beside the target, which the block moves or removes; removed after an error.

    It is locked while its process lives, so that the next writer can recognise the leftovers of a killed one.
    """
    for left in _neighbours(target):
        _remove_abandoned(left)
    lock = None
    while lock is None:
        temporary = target.parent / f".{target.name}.{secrets.token_hex(TOKEN // 2)}.tmp"
        make(temporary)
        lock = _locked(temporary)
    with lock:
        try:
            yield temporary
        except BaseException:
            _remove(temporary)
            raise


def _neighbours(target: Path) -> Iterator[Path]:
    """Return the temporary files and folders of a target, of any process."""
    return target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * TOKEN}.tmp")


def _locked(temporary: Path) -> AbstractContextManager[object] | None:
    """Lock a file that this process has just made; None if another process removed it as abandoned."""
    if fcntl is None:
        return nullcontext()
    try:
        lock = _Lock(temporary)
        with contextlib.suppress(OSError):  # a file system without locks, on which leftovers stay
            fcntl.flock(lock.descriptor, fcntl.LOCK_EX)
        if temporary.exists():
            return lock
        lock.close()
    except FileNotFoundError:
        pass
    return None


def _remove_abandoned(temporary: Path) -> None:
    """Remove a temporary file that no living process has locked; errors are ignored."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), _Lock(temporary) as lock:
        fcntl.flock(lock.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(temporary)


class _Lock(AbstractContextManager["_Lock"]):
    """An open file or folder that holds a lock until it is closed or its process ends."""

    def __init__(self, path: Path):
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self.descriptor)

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(temporary: Path) -> None:
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)


@contextmanager
def called(name: str, parameter: str = "path") -> Iterator[None]:
    """Rename a parameter in error messages to the name that the user knows."""
    try:
        yield
    except (OSError, ValueError) as error:
        said = str(error)
        if not said.startswith(f"{parameter}: "):
            raise
        raise type(error)(name + said.removeprefix(parameter)) from error


def _refused(target: Path, error: OSError) -> OSError:
    """Return the error with the name of the target instead of the temporary file."""
    # numpy reports the number of written items instead of the cause.
    cut_short = "requested and" in str(error)
    reason = error.strerror or (f"is the disk full? ({error})" if cut_short else str(error))
    return type(error)(f"path: cannot write {target}: {reason}")
