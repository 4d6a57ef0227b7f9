"""One kind of file: safetensors with a JSON header, written whole or not at all. No pickle, no code."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HEADER = "drkm"


def write(path: str | os.PathLike[str], tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and a JSON header to a temporary file beside `path` and rename it into place."""
    from safetensors.torch import save

    target = Path(path)
    data = save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, {HEADER: json.dumps(header)}
    )
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise OSError(f"path: cannot write {target}: {error.strerror or error}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read(
    path: str | os.PathLike[str], kind: str, version: int, device: str | torch.device = "cpu"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the header of a file of this kind, or raise one sentence that says what is wrong."""
    from safetensors import SafetensorError, safe_open

    target = Path(path)
    if not target.is_file():
        raise FileNotFoundError(f"path: there is no file {target}")
    try:
        with safe_open(str(target), framework="pt", device=str(device)) as file:
            header = json.loads((file.metadata() or {}).get(HEADER, "null"))
            ours = isinstance(header, dict) and header.get("kind") == kind
            if ours and header.get("version", 0) > version:
                newer = header["version"]
                raise ValueError(
                    f"path: {target} was written by a newer drkm (format {newer}, this one reads up to {version}): "
                    "upgrade drkm"
                )
            if ours:
                return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118 - not a dict
    except (SafetensorError, json.JSONDecodeError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"path: {target} is truncated or not a drkm {kind} ({error})") from error
    raise ValueError(f"path: {target} is not a drkm {kind}")
