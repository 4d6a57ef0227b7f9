"""The safetensors format: reading into memory of our own, and writing without a copy of everything.

The safetensors library maps files into memory: truncating the file then kills the process, writing to it changes the
tensors, and the last bits of sums depend on the places of tensors in the file. Before it writes, it forms everything in
memory, where samples that stay in a file may not fit.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.machine.memory import require

#: bytes before the header: its length
PREFIX = 8
#: maximum number of bytes that the format allows for a header
LARGEST_HEADER = 100_000_000
MOST_DIMENSIONS, TOO_MANY = 16, 1 << 60
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Entry:
    """Position of a tensor, in bytes from the beginning of the file."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class TensorFile:
    """An open file whose header has been checked to describe all of it, without gaps or overlaps.

    Raises ValueError, with the rest of a sentence, otherwise.
    """

    def __init__(self, file: BinaryIO):
        self._file = file
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(PREFIX), "little")
        if size < PREFIX or length > min(size - PREFIX, LARGEST_HEADER):
            raise ValueError("its header is cut short")
        described = parsed(file.read(length).decode())
        if not isinstance(described, dict):
            raise ValueError("its header describes no tensors")
        self.metadata = _texts(described.pop("__metadata__", {}))
        self.entries = {name: _entry(name, fields, PREFIX + length) for name, fields in described.items()}
        place = PREFIX + length
        for entry in sorted(self.entries.values(), key=lambda entry: (entry.begin, entry.end)):
            if entry.begin != place:
                raise ValueError("its tensors do not lie one after the other")
            place = entry.end
        if place != size:
            raise ValueError(f"it has {size} bytes where {place} are described")

    def read(self, what: str) -> dict[str, Tensor]:
        """Read the tensors, each into its own memory, if there is enough."""
        require(sum(entry.end - entry.begin for entry in self.entries.values()), torch.device("cpu"), what)
        return {name: self._tensor(name, entry) for name, entry in self.entries.items()}

    def _tensor(self, name: str, entry: Entry) -> Tensor:
        # torch aligns its allocations to 64 bytes.
        flat = torch.empty(math.prod(entry.shape), dtype=entry.dtype)
        self._file.seek(entry.begin)
        if self._file.readinto(flat.view(torch.uint8).numpy().data) != entry.end - entry.begin:  # type: ignore[attr-defined]
            raise ValueError(f"{name} is cut short")
        return flat.reshape(entry.shape)


def write(file: BinaryIO, tensors: Mapping[str, Tensor | Rows], metadata: Mapping[str, str]) -> None:
    """Write tensors in sequence, the widest types first, so that each is aligned to its own width."""
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    described: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name in names:
        dtype, shape = tensors[name].dtype, tensors[name].shape
        end = place + math.prod(shape) * dtype.itemsize
        described[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [place, end]}
        place = end
    header = json.dumps(described, separators=(",", ":")).encode()
    header += b" " * (-len(header) % PREFIX)
    file.write(len(header).to_bytes(PREFIX, "little") + header)
    for name in names:
        for part in contents(tensors[name]):
            file.write(part)


def contents(numbers: Tensor | Rows) -> Iterator[memoryview]:
    """Yield the bytes of all numbers; those in a file a few rows at a time."""
    parts = (numbers[rows] for rows in numbers.tiles()) if isinstance(numbers, Rows) else (numbers,)
    for part in parts:
        # torch cannot view some strides as bytes, not even those of an empty tensor.
        if part.numel():
            yield part.detach().cpu().reshape(-1).view(torch.uint8).numpy().data


def parsed(text: str) -> Any:
    """Parse JSON; any other text, also one nested too deeply, raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("its header is nested too deeply") from error


def _texts(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not texts")
    return metadata


def _entry(name: str, fields: Any, origin: int) -> Entry:
    """Return the entry of a tensor after a check that its shape and type match its bytes."""
    match fields:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [int(begin), int(end)], **more} if not more:
            dtype = DTYPES.get(kind)
            if dtype is not None and _is_shape(shape) and math.prod(shape) * dtype.itemsize == end - begin:
                return Entry(dtype, tuple(shape), origin + begin, origin + end)
    raise ValueError(f"the tensor {name!r} is not described as it should be")


def _is_shape(shape: list[Any]) -> bool:
    """Whether torch accepts it as a shape; even with a 0 in it, the product of the others must not overflow."""
    counts = len(shape) <= MOST_DIMENSIONS and all(type(count) is int and 0 <= count < TOO_MANY for count in shape)
    return counts and math.prod(max(count, 1) for count in shape) < TOO_MANY
