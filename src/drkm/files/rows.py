"""Samples that stay in a file and are read in tiles."""

from __future__ import annotations

import math
import mmap
import os
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files._guarded import check_room, reading
from drkm.files._npy import check_npy
from drkm.files._table import Refused, listed
from drkm.machine.layout import copied, slices
from drkm.machine.memory import TRIFLE, require
from drkm.wording import in_bytes

#: bytes of one tile when a whole file is read, and how much larger tiles are on a GPU, which has to wait for each
PASS_BYTES, LARGER_ON_GPU = 1 << 22, 16
#: maximum compression ratio of an HDF5 file; gzip reaches 1,032, and a higher one means only fill values
MOST_COMPRESSION = 10_000


class Rows:
    """A matrix on disk, one row per sample, whose slices are read as tensors on demand.

    Parameters
    ----------
    array : numpy.memmap or h5py.Dataset
        The file: n×d real numbers of any type.
    dtype : torch.dtype
        Precision of the tensors.
    device : torch.device
        Device of the tensors.

    Attributes
    ----------
    label : str
        Name in error messages: X, and the file if its name is known.
    """

    def __init__(self, array: Any, dtype: torch.dtype = torch.float64, device: torch.device | str = "cpu"):
        try:
            dimensions = array.ndim
        except (AttributeError, RuntimeError) as error:
            raise TypeError(f"X: expected a dataset of an open HDF5 file, got {array!r}") from error
        # A closed file does not know its name.
        source = getattr(array, "filename", None) or getattr(getattr(array, "file", None), "filename", None)
        self.label = "X" if source is None else f"X: {source}"
        if dimensions != 2:
            raise ValueError(f"{self.label}: expected 2 dimensions, samples by features, got {dimensions}")
        if np.dtype(array.dtype).kind not in "fiub":
            raise TypeError(f"{self.label}: expected real numbers, got {array.dtype}")
        self.array = array
        self.shape = tuple(array.shape)
        self.dtype, self.device = dtype, torch.device(device)
        self._mean: Tensor | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | Tensor) -> Tensor:
        """Read rows by a slice or by their numbers as a new tensor."""
        if isinstance(index, slice):
            return self._read(index)
        # Read forwards; HDF5 requires each row at most once.
        unique, inverse = torch.unique(index.cpu(), return_inverse=True)
        found = self._read(unique.numpy())
        return found if torch.equal(unique, index.cpu()) else found[inverse.to(self.device)]

    def to(self, *, dtype: torch.dtype, device: torch.device) -> Rows:
        """Return the same file with another precision or device of its tensors."""
        return Rows(self.array, dtype, device)

    def tensor(self) -> Tensor:
        """Read everything into memory."""
        out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        for rows in self.tiles():
            out[rows] = self[rows]
        return out

    def mean(self) -> Tensor:
        """Return the mean row, computed once."""
        if self._mean is None:
            total = torch.zeros(self.shape[1], dtype=torch.float64, device=self.device)
            for rows in self.tiles():
                total += self[rows].double().sum(dim=0)
            self._mean = (total / len(self)).to(self.dtype)
        return self._mean

    def tiles(self) -> list[slice]:
        """Return slices that cover all rows, each small enough not to need much memory."""
        return tiles(self)

    def _read(self, index: Any) -> Tensor:
        kind = np.float32 if self.dtype == torch.float32 else np.float64
        count = len(range(len(self))[index]) if isinstance(index, slice) else len(index)
        with reading(self.label, "cannot be read, is it damaged or closed?", OSError):
            if hasattr(self.array, "read_direct") and self.array.dtype == kind and count:
                # HDF5 would first make an array, which would double the memory.
                found = torch.empty(count, self.shape[1], dtype=self.dtype)
                self.array.read_direct(found.numpy(), source_sel=index)
            else:
                # Pixels are converted on a GPU, to which they travel in a quarter of the time. A copy, even if the file
                # has the right precision: it may be read-only.
                stays = self.array.dtype == np.uint8 and self.device.type != "cpu"
                found = copied(np.asarray(self.array[index]), None if stays else kind)
        self._release()
        return found.to(self.device).to(self.dtype)

    def _release(self) -> None:
        """Release the pages of a mapped file after reading, so that the process does not end up holding all of it."""
        # Changes in a private copy would be lost with its pages.
        if getattr(self.array, "mode", None) in ("r", "r+", "w+") and hasattr(mmap, "MADV_DONTNEED"):
            mapped = getattr(self.array, "_mmap", None)
            if isinstance(mapped, mmap.mmap):
                mapped.madvise(mmap.MADV_DONTNEED)


class AbsentRows(Rows):
    """The shape of samples that a model was saved without.

    Parameters
    ----------
    shape : tuple of int
    largest : Tensor of shape (k, d)
        Maximum of each column, over all samples or over k parts of them.
    """

    def __init__(self, shape: tuple[int, int], largest: Tensor):
        self.shape, self.largest, self.label = shape, largest, "X"
        self.dtype, self.device = largest.dtype, largest.device

    def __getitem__(self, index: slice | Tensor) -> Tensor:
        """Refuse."""
        raise ValueError("X: the model was saved without its samples, only with its landmarks")


def tiles(points: Tensor | Rows, most: int | None = None) -> list[slice]:
    """Return slices that cover all rows, each small enough not to need much memory, with at most `most` rows."""
    step = max(1, pass_bytes(points.device) // (8 * max(1, points.shape[1])))
    return slices(len(points), step if most is None else min(step, most))


def pass_bytes(device: torch.device) -> int:
    """Return the bytes of one tile when all samples are looked at."""
    return PASS_BYTES * LARGER_ON_GPU if device.type == "cuda" else PASS_BYTES


def largest_values(points: Tensor | Rows) -> Tensor:
    """Return the maximum of each column, as one row."""
    if isinstance(points, AbsentRows):
        return points.largest
    if isinstance(points, Rows):
        points = torch.stack([points[rows].amax(dim=0) for rows in points.tiles()])
    return points.amax(dim=0, keepdim=True)


def mean_row(points: Tensor | Rows) -> Tensor:
    """Return the mean of samples that are in memory or in a file."""
    return points.mean() if isinstance(points, Rows) else points.mean(dim=0)


def spread(points: Tensor | Rows) -> float:
    """Return the square root of the sum of the column variances."""
    if isinstance(points, Tensor):
        return points.var(dim=0, correction=0).sum().sqrt().item()
    squares = [(points[rows] - points.mean()).double().square().sum() for rows in points.tiles()]
    return math.sqrt(float(sum(squares)) / len(points))


def is_on_disk(X: Any) -> bool:
    """Whether X is a memory-mapped array or an HDF5 dataset, without importing h5py."""
    return isinstance(X, np.memmap) or type(X).__module__.partition(".")[0] == "h5py"


def open_rows(path: str | os.PathLike[str]) -> Rows:
    """Open the samples in a .npy file, or in an HDF5 file as "file.h5" (one dataset) or "file.h5:name".

    Only the header is read.
    """
    text = os.fspath(path)
    if text.endswith(".npy"):
        return Rows(_array(_existing(text)))
    name, _, inner = text.rpartition(":") if ".h5:" in text or ".hdf5:" in text else (text, "", "")
    if name.endswith((".h5", ".hdf5")):
        return Rows(_dataset(_existing(name), inner))
    raise ValueError(f'X: expected a .npy, .h5 or .hdf5 file, HDF5 with a dataset as in "file.h5:name", got {text!r}')


def _existing(path: str) -> str:
    if not os.path.isfile(path):
        raise FileNotFoundError(f"X: there is no file {path}")
    return path


def _array(path: str) -> Any:
    with reading(f"X: {path}", "is damaged or not a .npy file of numbers"):
        with open(path, "rb") as stream:
            check_npy(stream)
        return np.lib.format.open_memmap(path, mode="r")


def _dataset(path: str, name: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'drkm[data]'") from error
    with ExitStack() as opened:
        with reading(f"X: {path}", "is damaged or not an HDF5 file"):
            try:
                file = opened.enter_context(h5py.File(path, "r"))
            except BlockingIOError:
                raise Refused("is open for writing in another process") from None
            named = {name: file.get(name)} if name else dict(file.items())
            datasets = [entry for entry in named.values() if isinstance(entry, h5py.Dataset)]
            held = listed(list(file)) or "none"
            for dataset in datasets[:1]:
                _check_dataset(dataset, os.path.getsize(path))
        if len(datasets) != 1:
            raise ValueError(f'X: expected the name of one dataset as in "{path}:name", the file holds {held}')
        # The file stays open while its rows are used.
        opened.pop_all()
    return datasets[0]


def _check_dataset(dataset: Any, held: int) -> None:
    """Refuse a dataset that declares more than its file can hold, or whose smallest part does not fit into memory."""
    declared = f"declares {dataset.dtype} of shape {dataset.shape}"
    elsewhere = dataset.is_virtual or dataset.external
    if not elsewhere and TRIFLE < dataset.nbytes > MOST_COMPRESSION * held:
        raise Refused(f"{declared}, {in_bytes(dataset.nbytes)}, which a file of {in_bytes(held)} does not hold")
    row = 8 * math.prod(dataset.shape[1:])
    check_room(max(row, dataset.dtype.itemsize * math.prod(dataset.chunks or ())), declared)


def in_memory(points: Tensor | Rows) -> Tensor:
    """Return samples as one tensor, after a check that those of a file fit into memory."""
    if isinstance(points, Tensor):
        return points
    n, d = points.shape
    require(n * d * points.dtype.itemsize, points.device, f"X: reading {n}×{d} values into memory")
    return points.tensor()
