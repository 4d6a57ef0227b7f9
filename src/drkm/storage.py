"""One kind of file: safetensors with a JSON header, written whole or not at all. No pickle, no code."""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drkm.files import write_whole

HEADER, CHECKSUMS = "drkm", "checksums"


def write(path: str | os.PathLike[str], tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and a JSON header, whole or not at all."""
    from safetensors.torch import save

    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected the name of a file, got {path!r}")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # The format has no room for one tensor under two names.
    shared = Counter(tensor.untyped_storage().data_ptr() for tensor in plain.values())
    plain = {name: t.clone() if shared[t.untyped_storage().data_ptr()] > 1 else t for name, t in plain.items()}
    text = json.dumps(header, default=_numbers)
    data = save(plain, {HEADER: text, CHECKSUMS: json.dumps(_checksums(plain, text))})
    write_whole(path, lambda file: file.write(data))


def _numbers(value: Any) -> Any:
    """Return numbers of numpy or torch as JSON takes them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"header: {value!r} is none of the numbers, texts and lists that a file can hold")


def _checksums(tensors: dict[str, Tensor], header: str) -> dict[str, int]:
    """Return one number for each tensor, and one for the header under no name."""
    return {name: _checksum(tensor) for name, tensor in tensors.items()} | {"": zlib.crc32(header.encode())}


def _chosen(checksums: Any, prefix: str) -> Any:
    if not isinstance(checksums, dict):
        return checksums
    return {name: value for name, value in checksums.items() if not name or name.startswith(prefix)}


def _checksum(tensor: Tensor) -> int:
    kind = f"{tensor.dtype} {tuple(tensor.shape)}".encode()
    return zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, zlib.crc32(kind))


def read(
    path: str | os.PathLike[str], kind: str, version: int, device: str | torch.device = "cpu", prefix: str = ""
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the header of a file of this kind, or raise one sentence that says what is wrong.

    Only tensors whose names begin with `prefix` are read.
    """
    from safetensors import SafetensorError, safe_open

    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected the name of a file, got {path!r}")
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"path: {target} is a folder, not a drkm {kind}")
    if not target.is_file():
        raise FileNotFoundError(f"path: there is no file {target}")
    try:
        with safe_open(str(target), framework="pt") as file:
            metadata = file.metadata() or {}
            text, written_sums = metadata.get(HEADER, "null"), json.loads(metadata.get(CHECKSUMS, "null"))
            header = json.loads(text)
            ours = isinstance(header, dict) and header.get("kind") == kind
            written = header.get("version") if ours else None
            if isinstance(written, int):
                if written > version:
                    raise ValueError(
                        f"path: {target} was written by a newer drkm (format {written}, this one reads up to "
                        f"{version}): upgrade drkm"
                    )
                names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - not a dict
                tensors = {name: file.get_tensor(name) for name in names}
                # Files of the first versions have none.
                if written_sums is not None and _checksums(tensors, text) != _chosen(written_sums, prefix):
                    raise ValueError(f"path: {target} is damaged, it is not what was written")
                return {name: tensor.to(device) for name, tensor in tensors.items()}, header
    except (SafetensorError, json.JSONDecodeError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"path: {target} is truncated or not a drkm {kind} ({error})") from error
    raise ValueError(f"path: {target} is not a drkm {kind}")
