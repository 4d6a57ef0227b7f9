"""The file format of models and checkpoints: safetensors with a JSON header and checksums. No pickle, no code."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drkm.files import tensor_file
from drkm.files._whole import write_whole
from drkm.files.tensor_file import Stored, TensorFile, parsed
from drkm.wording import dtype_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from drkm.files.rows import Rows

HEADER, CHECKSUMS = "drkm", "checksums"
#: kinds of files that `drkm.load` reads
LOADED = ("model", "projection")
#: marks a header that has checksums
PROMISE = "has_checksums"


def write(path: str | os.PathLike[str], tensors: Mapping[str, Tensor | Rows | Stored], header: dict[str, Any]) -> None:
    """Write tensors and a JSON header atomically."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected the name of a file, got {path!r}")
    text = _short({**header, PROMISE: True})
    metadata = {HEADER: text, CHECKSUMS: _short(_checksums(tensors, text))}
    write_whole(path, lambda file: tensor_file.write(file, tensors, metadata))


def _short(values: dict[str, Any]) -> str:
    return json.dumps(values, default=_numbers, separators=(",", ":"))


def _numbers(value: Any) -> Any:
    """Convert numbers of numpy or torch to JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"header: {value!r} is none of the numbers, texts and lists that a file can hold")


def _checksums(numbers: Mapping[str, Tensor | Rows | Stored], header: str) -> dict[str, int]:
    """Return the checksums of the tensors and, under an empty name, of the header."""
    return {name: _checksum(part) for name, part in numbers.items()} | {"": zlib.crc32(header.encode())}


def _checksum(numbers: Tensor | Rows | Stored) -> int:
    kind = f"torch.{dtype_name(numbers.dtype)} {tuple(numbers.shape)}".encode()
    return reduce(lambda value, part: zlib.crc32(part, value), tensor_file.contents(numbers), zlib.crc32(kind))


def read(
    path: str | os.PathLike[str], kind: str, version: int, device: str | torch.device = "cpu"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the header of a file of this kind, or raise an error that says what is wrong."""
    stored, header = read_stored(path, kind, version)
    return as_tensors(stored, device), header


def as_tensors(stored: Mapping[str, Stored], device: str | torch.device = "cpu") -> dict[str, Tensor]:
    """Return the content of a file as tensors, which share its memory if they are on the CPU."""
    import torch

    return {
        name: torch.from_numpy(part.content).view(getattr(torch, part.dtype)).reshape(part.shape).to(device)
        for name, part in stored.items()
    }


def read_stored(path: str | os.PathLike[str], kind: str, version: int) -> tuple[dict[str, Stored], dict[str, Any]]:
    """Read a file as `read` does, without torch.

    The file is closed afterwards and may change.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected the name of a file, got {path!r}")
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"path: {target} is a folder, not a drkm {kind}")
    if not target.is_file():
        raise FileNotFoundError(f"path: there is no file {target}")
    what = f"path: reading {target}"
    try:
        with target.open("rb") as opened:
            file = TensorFile(opened)
            header = parsed(file.metadata.get(HEADER, "null"), what)
            _check_kind(header, target, kind, version)
            stored = file.read(what)
            _check_sums(file.metadata, header, stored, target)
    except WrongFile:
        raise
    except (ValueError, OSError) as error:
        raise ValueError(f"path: {target} is truncated or not a drkm {kind} ({error})") from error
    header.pop(PROMISE, None)
    return stored, header


class WrongFile(ValueError):
    """An error about a file that is already a complete sentence."""


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return what a file says it is, as "model", or None if it is no such file."""
    try:
        with Path(path).open("rb") as opened:
            header = parsed(TensorFile(opened).metadata.get(HEADER, "null"), f"path: reading {path}")
    except (TypeError, ValueError, OSError):
        return None
    return header.get("kind") if isinstance(header, dict) else None


def _check_kind(header: Any, target: Path, kind: str, version: int) -> None:
    """Check that the header belongs to this kind of file, in a version that can be read."""
    found = header if isinstance(header, dict) else {}
    written = found.get("version") if found.get("kind") == kind else None
    if type(written) is not int or written < 1:
        other = next((other for other in LOADED if other == found.get("kind") != kind), None)
        instead = f" but a {other}, which drkm.load reads" if other else ""
        raise WrongFile(f"path: {target} is not a drkm {kind}{instead}")
    if written > version:
        raise WrongFile(
            f"path: {target} was written by a newer drkm (format {written}, this one reads up to {version}): "
            "upgrade drkm"
        )


def _check_sums(metadata: dict[str, str], header: dict[str, Any], stored: dict[str, Stored], target: Path) -> None:
    """Check that the content of the file matches its checksums.

    The first versions wrote no checksums. Their files have no other metadata either, and no header that announces
    checksums, so that a newer file in which one of the two is damaged is not mistaken for one of them.
    """
    if set(metadata) == {HEADER} and not header.get(PROMISE):
        return
    if set(metadata) == {HEADER, CHECKSUMS}:
        expected = parsed(metadata[CHECKSUMS], f"path: reading {target}")
        if _checksums(stored, metadata[HEADER]) == expected:
            return
    raise WrongFile(f"path: {target} is damaged, its content has changed since it was written")
