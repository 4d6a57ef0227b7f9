"""Protected reading of files that may be damaged or too large: errors of one sentence with the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from drkm.files._table import Refused
from drkm.machine.memory import TRIFLE, available_on_host
from drkm.wording import in_bytes

#: maximum number of characters of a library's error message
MOST_SAID = 200


@contextmanager
def reading(subject: str, failure: str, error: type[Exception] = ValueError) -> Iterator[None]:
    """Turn any error inside the block into one sentence that begins with the file.

    A damaged file can fail in as many ways as there are libraries that read it (zlib, tokenize, struct, zipfile, HDF5,
    each with its own errors), and a list of them would never be complete. Import errors are not changed.

    Parameters
    ----------
    subject : str
        The file: the beginning of the sentence.
    failure : str
        The rest of the sentence if the file is damaged.
    error : type
        Type of the error that is raised.
    """
    try:
        yield
    except ImportError:
        raise
    except Refused as refusal:
        raise error(f"{subject} {refusal}") from None
    except FileNotFoundError as cause:
        raise error(f"{subject} does not exist") from cause
    except PermissionError as cause:
        raise error(f"{subject} cannot be read: permission denied") from cause
    except MemoryError as cause:
        raise error(f"{subject} needs more memory than is available") from cause
    except Exception as cause:
        raise error(f"{subject} {failure} ({_reason(cause)})") from cause


def check_room(needed: int, content: str) -> None:
    """Refuse a file that declares more than fits into memory, before any of it is read.

    Parameters
    ----------
    needed : int
        Bytes.
    content : str
        What the file holds or declares: the continuation of the sentence after its name.
    """
    if needed <= TRIFLE:
        return
    there = available_on_host()
    if needed > there:
        raise Refused(f"{content}: that takes {in_bytes(needed)} of memory, {in_bytes(there)} are available")


def _reason(error: Exception) -> str:
    """Return the message of an error on one line, without control characters."""
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in words[:MOST_SAID])
