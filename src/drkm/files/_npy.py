"""Headers of .npy and .npz files, checked against the file size and available memory before arrays are read."""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from drkm.files._guarded import check_room
from drkm.files._table import Refused, listed
from drkm.wording import in_bytes

_CHUNK_BYTES = 1 << 22
#: maximum length of a header: numpy refuses more than 10,000 characters
_HEADER_BYTES = 1 << 16
_PARSERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class Header:
    """The header of a .npy file."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Number of values, as a Python integer, because a damaged header can exceed int64."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Number of bytes in the file."""
        return self.size * self.dtype.itemsize

    def arranged(self, values: NDArray) -> NDArray:
        """Return the values of the file in the shape of the array."""
        return values.reshape(self.shape, order="F" if self.fortran else "C")

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


def check_npy(stream: BinaryIO) -> Header:
    """Return the header if the file has the declared length, and seek to the first value."""
    start = io.BytesIO(stream.read(_HEADER_BYTES))
    header = _read_header(start)
    held = os.fstat(stream.fileno()).st_size - start.tell()
    if held != header.bytes:
        raise ValueError(f"it declares {header}, {in_bytes(header.bytes)}, and holds {in_bytes(held)}")
    stream.seek(start.tell())
    return header


def _read_header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    parse = _PARSERS.get(version)
    if parse is None:
        raise Refused(f"is in npy format {version}, versions 1 and 2 are read")
    try:
        # numpy warns about headers written by Python 2; the original dSprites file is that old.
        with warnings.catch_warnings(action="ignore"):
            shape, fortran, dtype = parse(stream)
    except MemoryError:
        raise ValueError("its header is nested too deeply") from None
    if dtype.hasobject:
        raise Refused("holds Python objects, which are never read")
    if any(length < 0 for length in shape):
        raise ValueError(f"it declares the shape {shape}")
    return Header(shape, bool(fortran) and len(shape) > 1, dtype)


class NpzFile:
    """The arrays of an .npz file, read one at a time and checked before memory is allocated for them.

    Only requested members are read, so that a pickled object elsewhere in the file is never loaded, and each is
    verified against its checksum.
    """

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self._zip.close()

    def names(self) -> list[str]:
        """Return the names of the arrays, and of other members, because an array may have lost its suffix."""
        return [name.removesuffix(".npy") for name in dict.fromkeys(self._zip.namelist())]

    def require(self, *names: str) -> None:
        """Raise an error for the first array that is missing."""
        for name in names:
            if name not in self.names():
                raise Refused(f"has no array {name!r}, it holds {listed(sorted(self.names())) or 'none'}")

    def header(self, name: str) -> Header:
        """Return the header of an array without reading it."""
        with self._open(name) as (_, header):
            return header

    def read(self, name: str, max_bytes: int | None = None) -> NDArray:
        """Read one array completely."""
        with self._open(name) as (stream, header):
            if max_bytes is not None and header.bytes > max_bytes:
                raise Refused(f"has an array {name!r}, {header}, that is larger than expected")
            check_room(header.bytes, f"declares an array {name!r}, {header}")
            array = np.empty(header.bytes, dtype=np.uint8)
            for start in range(0, header.bytes, _CHUNK_BYTES):
                data = stream.read(min(_CHUNK_BYTES, header.bytes - start))
                array[start : start + _CHUNK_BYTES] = np.frombuffer(data, dtype=np.uint8)
            self._expect_end(stream, name)
        if not header.bytes:
            return np.empty(header.shape, header.dtype)
        return header.arranged(array.view(header.dtype))

    def read_rows(self, name: str, shape: tuple[int, ...], dtype: str) -> Iterator[tuple[int, NDArray]]:
        """Yield (first row, rows) blocks of an array of exactly this shape and dtype, in order."""
        with self._open(name) as (stream, header):
            if header != Header(shape, False, np.dtype(dtype)):
                order = " in Fortran order" if header.fortran else ""
                raise Refused(f"has an array {name!r} that should be {dtype} of shape {shape}, is {header}{order}")
            row_bytes = header.bytes // shape[0]
            step = max(1, _CHUNK_BYTES // row_bytes)
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                data = stream.read(rows * row_bytes)
                yield start, np.frombuffer(data, dtype=header.dtype).reshape(rows, *shape[1:])
            self._expect_end(stream, name)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], Header]]:
        self.require(name)
        member = self._zip.getinfo(f"{name}.npy")
        with self._zip.open(member) as stream:
            # A few kilobytes can unpack to a header of any length.
            start = io.BytesIO(stream.read(_HEADER_BYTES))
        try:
            header = _read_header(start)
        except Refused as refusal:
            raise Refused(f"has an array {name!r} that {refusal}") from None
        if member.file_size != start.tell() + header.bytes:
            raise Refused(f"has an array {name!r}, {header}, that does not fit its {member.file_size} bytes")
        # Opened again, because zipfile compares no checksum after a seek.
        with self._zip.open(member) as stream:
            stream.read(start.tell())
            yield stream, header

    def _expect_end(self, stream: IO[bytes], name: str) -> None:
        # zipfile compares the checksum only when the last byte is passed.
        if stream.read(1):
            raise Refused(f"has an array {name!r} that is longer than its header says")
