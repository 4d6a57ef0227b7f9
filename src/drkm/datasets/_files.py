"""Reading files that may be damaged or foreign, without pickle, with one sentence when it fails."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

_CHUNK_BYTES = 1 << 22


class DatasetError(ValueError):
    """A dataset file that is missing, damaged or not what it should be."""


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into one :class:`DatasetError` that names the file.

    Damaged archives fail in many ways (zlib, zipfile, tarfile, numpy, scipy, struct: each its own errors);
    the reader of the message needs only: this file, this problem.
    """
    try:
        yield
    except DatasetError:
        raise
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: no such file") from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DatasetError(f"{path}: is damaged or not {what} ({reason[:200]})") from error


class NpzFile:
    """The arrays of an ``.npz`` file, read one at a time and checked before memory is taken for them.

    Only the members asked for are touched, so a pickled object elsewhere in the file is never loaded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = zipfile.ZipFile(path)

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self._zip.close()

    def names(self) -> set[str]:
        """Return the names of the arrays."""
        return {name.removesuffix(".npy") for name in self._zip.namelist() if name.endswith(".npy")}

    def require(self, *names: str) -> None:
        """Complain about the first array that is not there."""
        for name in names:
            if name not in self.names():
                found = ", ".join(sorted(self.names())) or "none"
                raise DatasetError(f"{self.path}: has no array {name!r} (found: {found})")

    def read(self, name: str, max_bytes: int = 1 << 30) -> NDArray:
        """Read one array whole."""
        with self._open(name) as (stream, shape, fortran, dtype, size):
            if size > max_bytes:
                raise DatasetError(f"{self.path}: array {name!r} of shape {shape} is larger than expected")
            array = np.empty(size, dtype=np.uint8)
            for start in range(0, size, _CHUNK_BYTES):
                data = stream.read(min(_CHUNK_BYTES, size - start))
                array[start : start + len(data)] = np.frombuffer(data, dtype=np.uint8)
            self._expect_end(stream, name)
        if not size:
            return np.empty(shape, dtype)
        return array.view(dtype).reshape(shape, order="F" if fortran else "C")

    def read_rows(self, name: str, shape: tuple[int, ...], dtype: str) -> Iterator[tuple[int, NDArray]]:
        """Yield (first row, rows) blocks of an array of exactly this shape and dtype, in order."""
        with self._open(name) as (stream, found, fortran, found_dtype, size):
            if found != shape or found_dtype != np.dtype(dtype) or fortran:
                order = " in Fortran order" if fortran else ""
                raise DatasetError(
                    f"{self.path}: array {name!r} should be {dtype} of shape {shape},"
                    f" is {found_dtype} of {found}{order}"
                )
            row_bytes = size // shape[0]
            step = max(1, _CHUNK_BYTES // row_bytes)
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                data = stream.read(rows * row_bytes)
                yield start, np.frombuffer(data, dtype=found_dtype).reshape(rows, *shape[1:])
            self._expect_end(stream, name)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], bool, np.dtype, int]]:
        self.require(name)
        member = self._zip.getinfo(f"{name}.npy")
        with self._zip.open(member) as stream:
            shape, fortran, dtype = _header(stream, f"{self.path}: array {name!r}")
            # In Python integers: a damaged header can name more elements than int64 holds.
            size = math.prod(shape) * dtype.itemsize
            if member.file_size != stream.tell() + size:
                raise DatasetError(
                    f"{self.path}: array {name!r} of shape {shape} does not fit its {member.file_size} bytes"
                )
            yield stream, shape, fortran, dtype, size

    def _expect_end(self, stream: IO[bytes], name: str) -> None:
        # Reading past the last byte is what makes zipfile compare the checksum.
        if stream.read(1):
            raise DatasetError(f"{self.path}: array {name!r} is longer than its header says")


def _header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    # Headers written by Python 2 are parsed with a warning; the original dSprites file is that old.
    with warnings.catch_warnings(action="ignore"):
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise DatasetError(f"{where} is in npy format {version}, versions 1 and 2 are read")
    if dtype.hasobject:
        raise DatasetError(f"{where} holds Python objects, which are never read")
    return shape, bool(fortran) and len(shape) > 1, dtype


def read_compact(
    path: Path, what: str, factor_names: tuple[str, ...], image_shape: tuple[int, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read a compact ``.npz``: ``images`` uint8, ``factors`` class indices, ``factor_names``.

    Returns
    -------
    images : uint8 array of shape (n, *image_shape)
    factors : int64 array of shape (n, n_factors)
    """
    with reading(path, f"a compact {what} file"), NpzFile(path) as file:
        file.require("images", "factors", "factor_names")
        names = tuple(str(n) for n in file.read("factor_names", 1 << 16).ravel())
        if names != factor_names:
            raise DatasetError(f"{path}: is not {what}: its factors are {names}, expected {factor_names}")
        factors = file.read("factors", 1 << 28)
        images = file.read("images", 1 << 32)
        if images.dtype != np.uint8 or images.shape[1:] != image_shape or len(images) == 0:
            raise DatasetError(
                f"{path}: array 'images' should be uint8 of shape (n, {', '.join(map(str, image_shape))}),"
                f" is {images.dtype} of {images.shape}"
            )
        if factors.dtype.kind not in "iu" or factors.shape != (len(images), len(names)):
            raise DatasetError(
                f"{path}: array 'factors' should hold integers of shape ({len(images)}, {len(names)}),"
                f" is {factors.dtype} of {factors.shape}"
            )
    return images, factors.astype(np.int64)
