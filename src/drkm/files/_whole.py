"""Files and folders that are written whole or not at all, and by which name errors call them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> Path:
    """Let `write` fill a temporary file beside `path`, and rename it into place when it is whole."""
    target = Path(path)
    temporary = _neighbour(target)
    try:
        # Not tempfile, whose files nobody but their owner may read.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise _refused(target, error) from error
    return target


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the error of `write_whole`, before the work is done, where no file can be made; permissions lie."""
    target = Path(path)
    temporary = _neighbour(target)
    try:
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise _refused(target, error) from error


def write_whole_folder(path: str | os.PathLike[str], fill: Callable[[Path], object]) -> Path:
    """Let `fill` put files into a temporary folder beside `path`, which then takes the place of no or an empty one."""
    target = Path(path)
    temporary = _neighbour(target)
    try:
        temporary.mkdir()
        try:
            fill(temporary)
            # Windows does not rename onto a folder that is there, even an empty one.
            if target.is_dir():
                target.rmdir()
            os.replace(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        raise _refused(target, error) from error
    return target


@contextmanager
def called(name: str, parameter: str = "path") -> Iterator[None]:
    """Let sentences about a parameter of what is called here begin with the name that the user knows it by."""
    try:
        yield
    except (OSError, ValueError) as error:
        said = str(error)
        if not said.startswith(f"{parameter}: "):
            raise
        raise type(error)(name + said.removeprefix(parameter)) from error


def _neighbour(target: Path) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.tmp"


def _refused(target: Path, error: OSError) -> OSError:
    """Return the error as a sentence with the name that the caller knows, not that of the temporary file."""
    # numpy counts what was written instead of naming the cause.
    cut_short = "requested and" in str(error)
    reason = error.strerror or (f"is the disk full? ({error})" if cut_short else str(error))
    return type(error)(f"path: cannot write {target}: {reason}")
