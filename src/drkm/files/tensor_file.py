"""The safetensors format: reading into memory of our own, and writing without a copy of everything.

The safetensors library maps files into memory: truncating the file then kills the process, writing to it changes the
tensors, and the last bits of sums depend on the places of tensors in the file. Before it writes, it forms everything in
memory, where samples that stay in a file may not fit. Reading needs numpy alone.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from drkm.machine.memory import require
from drkm.wording import dtype_name, in_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from drkm.files.rows import Rows

#: bytes before the header: its length
PREFIX = 8
#: maximum number of bytes that the format allows for a header
LARGEST_HEADER = 100_000_000
MOST_DIMENSIONS, TOO_MANY = 16, 1 << 60
#: bytes that parsed JSON needs: per letter, in texts with rare letters, and per object, list and further entry
LETTER = 4
PARSED = {"{": 220, "[": 110, ",": 180}
#: types by the names of the format, with the names of numpy and torch and the bytes per number
DTYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
    "C64": ("complex64", 8),
}
NAMES = {dtype: name for name, (dtype, _) in DTYPES.items()}
#: bytes of a cache line, at which the numbers of every tensor begin
ALIGNMENT = 64


@dataclass(frozen=True)
class Entry:
    """Type and position of a tensor, in bytes from the beginning of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Stored:
    """The content of a tensor, before numpy or torch gives it a type.

    Attributes
    ----------
    dtype : str
        Name of the type in torch and, for all but bfloat16, in numpy.
    shape : tuple of int
    content : array of uint8
    """

    dtype: str
    shape: tuple[int, ...]
    content: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Stored:
        """Return the content of an array."""
        return cls(str(array.dtype), array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def array(self) -> np.ndarray:
        """Return the numbers as an array."""
        return self.content.view(self.dtype).reshape(self.shape)


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
        described = parsed(file.read(length).decode(), f"path: reading {file.name}")
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

    def read(self, what: str) -> dict[str, Stored]:
        """Read the tensors, each into its own memory, if there is enough."""
        require(sum(entry.end - entry.begin for entry in self.entries.values()), "cpu", what)
        return {name: self._stored(name, entry) for name, entry in self.entries.items()}

    def _stored(self, name: str, entry: Entry) -> Stored:
        content = _aligned(entry.end - entry.begin)
        self._file.seek(entry.begin)
        if self._file.readinto(content.data) != len(content):  # type: ignore[attr-defined]
            raise ValueError(f"{name} is cut short")
        return Stored(entry.dtype, entry.shape, content)


def _aligned(size: int) -> np.ndarray:
    """Return memory for so many bytes that begins where a cache line does; numpy's own need not."""
    room = np.empty(size + ALIGNMENT, dtype=np.uint8)
    begin = -room.ctypes.data % ALIGNMENT
    return room[begin : begin + size]


def write(file: BinaryIO, tensors: Mapping[str, Tensor | Rows | Stored], metadata: Mapping[str, str]) -> None:
    """Write tensors in sequence, the widest types first, so that each is aligned to its own width."""
    kinds = {name: NAMES[dtype_name(part.dtype)] for name, part in tensors.items()}
    names = sorted(tensors, key=lambda name: (-DTYPES[kinds[name]][1], name))
    described: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name in names:
        end = place + math.prod(tensors[name].shape) * DTYPES[kinds[name]][1]
        described[name] = {"dtype": kinds[name], "shape": list(tensors[name].shape), "data_offsets": [place, end]}
        place = end
    header = json.dumps(described, separators=(",", ":")).encode()
    header += b" " * (-len(header) % PREFIX)
    if len(header) > LARGEST_HEADER:
        raise ValueError(
            f"path: a file has room for {in_bytes(LARGEST_HEADER)} besides its tensors, got {in_bytes(len(header))}"
        )
    file.write(len(header).to_bytes(PREFIX, "little") + header)
    for name in names:
        for part in contents(tensors[name]):
            file.write(part)


def contents(numbers: Tensor | Rows | Stored) -> Iterator[memoryview]:
    """Yield the bytes of all numbers; those in a file a few rows at a time."""
    if isinstance(numbers, Stored):
        yield numbers.content.data
        return
    import torch

    parts = (numbers,) if isinstance(numbers, torch.Tensor) else (numbers[rows] for rows in numbers.tiles())
    for part in parts:
        # torch cannot view some strides as bytes, not even those of an empty tensor.
        if part.numel():
            yield part.detach().cpu().reshape(-1).view(torch.uint8).numpy().data


def parsed(text: str, what: str) -> Any:
    """Parse JSON, if there is memory for it; any other text, also one nested too deeply, raises ValueError."""
    # A list of empty lists needs 20 times as much as its text.
    require(LETTER * len(text) + sum(size * text.count(letter) for letter, size in PARSED.items()), "cpu", what)
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
            dtype, width = DTYPES.get(kind, ("", 0))
            if dtype and _is_shape(shape) and math.prod(shape) * width == end - begin:
                return Entry(dtype, tuple(shape), origin + begin, origin + end)
    raise ValueError(f"the tensor {name!r} is not described as it should be")


def _is_shape(shape: list[Any]) -> bool:
    """Whether torch accepts it as a shape; even with a 0 in it, the product of the others must not overflow."""
    counts = len(shape) <= MOST_DIMENSIONS and all(type(count) is int and 0 <= count < TOO_MANY for count in shape)
    return counts and math.prod(max(count, 1) for count in shape) < TOO_MANY
