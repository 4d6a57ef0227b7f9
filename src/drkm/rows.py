"""Samples that stay in a file and are read in tiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.layout import copied

#: bytes of one tile when a whole file is passed through
PASS_BYTES = 1 << 26


class Rows:
    """A matrix on disk, one row a sample, of which slices become tensors when asked for.

    Parameters
    ----------
    array : numpy.memmap or h5py.Dataset
        The file, n×d numbers of any real kind.
    dtype : torch.dtype
        Precision of the tensors.
    device : torch.device
        Where they are put.
    """

    def __init__(self, array: Any, dtype: torch.dtype = torch.float64, device: torch.device | str = "cpu"):
        try:
            dimensions = array.ndim
        except (AttributeError, RuntimeError) as error:
            raise TypeError(f"X: expected a dataset of an open HDF5 file, got {array!r}") from error
        if dimensions != 2:
            raise ValueError(f"X: expected 2 dimensions, samples by features, got {dimensions}")
        if np.dtype(array.dtype).kind not in "fiub":
            raise TypeError(f"X: expected real numbers, got {array.dtype}")
        self.array = array
        self.shape = tuple(array.shape)
        self.dtype, self.device = dtype, torch.device(device)
        self._mean: Tensor | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | Tensor) -> Tensor:
        """Return some rows, by a slice or by their numbers, as a tensor of their own."""
        if isinstance(index, slice):
            return self._read(index)
        # Files are read forwards, and HDF5 takes each row once.
        unique, inverse = torch.unique(index.cpu(), return_inverse=True)
        return self._read(unique.numpy())[inverse.to(self.device)]

    def to(self, *, dtype: torch.dtype, device: torch.device) -> Rows:
        """Return the same file as tensors of another precision or device."""
        return Rows(self.array, dtype, device)

    def tensor(self) -> Tensor:
        """Return everything in memory."""
        out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        for rows in self.tiles():
            out[rows] = self[rows]
        return out

    def mean(self) -> Tensor:
        """Return the mean row, found once."""
        if self._mean is None:
            total = torch.zeros(self.shape[1], dtype=torch.float64, device=self.device)
            for rows in self.tiles():
                total += self[rows].double().sum(dim=0)
            self._mean = (total / len(self)).to(self.dtype)
        return self._mean

    def tiles(self) -> Iterator[slice]:
        """Return slices that cover all rows, each of a size that memory does not notice."""
        step = max(1, PASS_BYTES // (8 * max(1, self.shape[1])))
        for begin in range(0, len(self), step):
            yield slice(begin, min(begin + step, len(self)))

    def _read(self, index: Any) -> Tensor:
        try:
            rows = self.array[index]
        except (OSError, RuntimeError) as error:
            raise OSError(f"X: its file cannot be read, is it damaged or closed? ({error})") from error
        return self._tensor(rows)

    def _tensor(self, rows: Any) -> Tensor:
        # A copy, also where the file has the right precision: it may be open for reading only.
        kind = np.float32 if self.dtype == torch.float32 else np.float64
        return copied(np.asarray(rows), kind).to(self.device)


class AbsentRows(Rows):
    """The shape of samples that a model was saved without.

    Parameters
    ----------
    shape : tuple of int
    largest : Tensor of shape (k, d)
        The largest value of each column, of all samples or of k parts of them.
    """

    def __init__(self, shape: tuple[int, int], largest: Tensor):
        self.shape, self.largest = shape, largest
        self.dtype, self.device = largest.dtype, largest.device

    def __getitem__(self, index: slice | Tensor) -> Tensor:
        """Refuse."""
        raise ValueError("X: the model was saved without its samples, for which its landmarks stand")


def largest_values(points: Tensor | Rows) -> Tensor:
    """Return the largest value of each column, as one row."""
    if isinstance(points, AbsentRows):
        return points.largest
    if isinstance(points, Rows):
        points = torch.stack([points[rows].amax(dim=0) for rows in points.tiles()])
    return points.amax(dim=0, keepdim=True)


def mean_row(points: Tensor | Rows) -> Tensor:
    """Return the mean of samples that are in memory or in a file."""
    return points.mean() if isinstance(points, Rows) else points.mean(dim=0)


def is_on_disk(X: Any) -> bool:
    """Whether X is a memory-mapped array or an HDF5 dataset; h5py is not imported for it."""
    return isinstance(X, np.memmap) or type(X).__module__.partition(".")[0] == "h5py"


def open_rows(path: str | os.PathLike[str]) -> Rows:
    """Return the samples in a .npy file, or in an HDF5 file as "file.h5" (one dataset) or "file.h5:name".

    Nothing but the header is read.
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
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(f"X: {path} is damaged or not a .npy file of numbers ({error})") from error


def _dataset(path: str, name: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'drkm[data]'") from error
    try:
        file = h5py.File(path, "r")
        named = {name: file.get(name)} if name else dict(file.items())
        held = ", ".join(file) or "none"
    except BlockingIOError as error:
        raise ValueError(f"X: {path} is open for writing in another process") from error
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"X: {path} is damaged or not an HDF5 file ({error})") from error
    datasets = [entry for entry in named.values() if isinstance(entry, h5py.Dataset)]
    if len(datasets) != 1:
        raise ValueError(f'X: expected the name of one dataset as in "{path}:name", the file holds {held}')
    return datasets[0]
