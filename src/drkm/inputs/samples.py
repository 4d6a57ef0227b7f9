"""Conversion between numpy, pandas and torch: results have the type of the input."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import Rows, is_on_disk, open_rows
from drkm.machine import memory
from drkm.machine.layout import aligned, copied
from drkm.validation import checks
from drkm.validation.samples import checked
from drkm.wording import dtype_name

#: largest share of the samples' spread that rounding may take, and about how many rows are checked
WORST_ROUNDING, DIGITS_ROWS = 1e-2, 200
AS_A_FILE = 'a numpy.memmap or the path of a .npy or HDF5 file with gram="tiled" is read in tiles'


def is_frame(X: Any) -> bool:
    """Whether X is a pandas frame, without importing pandas."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def as_row(point: Any) -> Any:
    """Return a point with one or two dimensions as samples; a row of a data frame keeps its feature names."""
    if hasattr(point, "iloc") and hasattr(point, "to_frame"):
        return point.to_frame().T
    row = point if isinstance(point, Tensor) or is_frame(point) else np.asarray(point)
    return row if row.ndim > 1 else row[None]


def read(estimator: Any, X: Any, *, reset: bool, least: int = 1) -> Tensor | Rows:
    """Validate samples and return them as a tensor of their own precision and device, in our memory layout.

    A memory-mapped array, an HDF5 dataset or the path of a .npy or HDF5 file stays where it is and is returned as
    `Rows`. `reset` is for `fit`: it sets the number and names of features that later calls are checked against.
    """
    if isinstance(X, Tensor):
        return _read_tensor(estimator, X, reset=reset, least=least)
    if isinstance(X, str | os.PathLike):
        return _read_rows(estimator, open_rows(X), reset=reset, least=least)
    if isinstance(X, Rows) or is_on_disk(X):
        return _read_rows(estimator, X if isinstance(X, Rows) else Rows(X), reset=reset, least=least)
    # Pixels keep their small type until they reach the device and the precision of the model.
    kinds = (np.float64, np.float32, np.uint8)
    if isinstance(X, np.ndarray):
        # A copy, so that changes of the caller's array do not change the model.
        item = X.dtype.itemsize if X.dtype in kinds else 8
        memory.require(item * X.size, torch.device("cpu"), f"X: a copy of {X.size} values", AS_A_FILE)
    return copied(checked(estimator, X, reset=reset, dtype=kinds, ensure_min_samples=least))


def _read_tensor(estimator: Any, X: Tensor, *, reset: bool, least: int) -> Tensor:
    checks.dense_real("X", X)
    if X.ndim != 2:
        raise ValueError(f"X: expected 2 dimensions, samples by features, got {X.ndim}")
    X = X.detach()
    # Integers keep their small type until they reach the device and the precision of the model.
    X = X if not X.is_floating_point() or X.dtype in (torch.float32, torch.float64) else X.double()
    _check_shape(estimator, X, reset=reset, least=least)
    if not torch.isfinite(X).all():
        raise ValueError("X: contains NaN or infinity: drkm.Imputer fills in NaN")
    return aligned(X)


def _read_rows(estimator: Any, X: Rows, *, reset: bool, least: int) -> Rows:
    _check_shape(estimator, X, reset=reset, least=least)
    if np.dtype(X.array.dtype).kind == "f" and not all(torch.isfinite(X[rows]).all() for rows in X.tiles()):
        raise ValueError(f"{X.label}: contains NaN or infinity")
    return X


def _check_shape(estimator: Any, X: Tensor | Rows, *, reset: bool, least: int) -> None:
    label = X.label if isinstance(X, Rows) else "X"
    if len(X) < least:
        raise ValueError(f"{label}: expected at least {least} samples, got {len(X)}")
    if X.shape[1] == 0:
        raise ValueError(f"{label}: expected at least 1 feature, got 0 features")
    if reset:
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        name = type(estimator).__name__
        raise ValueError(
            f"{label}: has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features"
        )


def place(samples: Tensor | Rows, given: Any, dtype: torch.dtype, device: torch.device) -> Tensor | Rows:
    """Move the samples to the precision and device of a fit, after a check that a GPU can hold them.

    A tensor that the caller has `given` is copied, so that its changes do not change the model.
    """
    if dtype != torch.float64:
        _check_digits(samples, dtype)
    if isinstance(samples, Tensor) and device.type == "cuda" and samples.device.type != "cuda":
        needed = samples.numel() * dtype.itemsize
        memory.require(needed, device, f"X: {samples.numel()} values on the GPU", AS_A_FILE)
    if isinstance(samples, Tensor) and samples.dtype.itemsize < dtype.itemsize:
        # Pixels travel to a GPU in their small type.
        samples = samples.to(device)
    placed = samples.to(dtype=dtype, device=device)
    if isinstance(placed, Tensor) and isinstance(given, Tensor) and placed.data_ptr() == given.data_ptr():
        memory.require(placed.nbytes, device, f"X: a copy of {placed.numel()} values", AS_A_FILE)
        return placed.clone()
    return placed


def keeps_digits(samples: Tensor | Rows, dtype: torch.dtype) -> bool:
    """Whether a conversion of precision keeps most of the differences between samples."""
    lost, spread = _lost(samples, dtype)
    return bool(lost <= WORST_ROUNDING * spread)


def _lost(samples: Tensor | Rows, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the length of what a conversion loses of some samples, and that of their differences."""
    rows = samples[:: max(1, len(samples) // DIGITS_ROWS)].double()
    lost, spread = ((part - part.mean(dim=0)).norm() for part in (rows - rows.to(dtype).double(), rows))
    return lost, spread


def _check_digits(samples: Tensor | Rows, dtype: torch.dtype) -> None:
    """Raise an error if a conversion of precision loses too much of the differences between samples."""
    lost, spread = _lost(samples, dtype)
    if lost > WORST_ROUNDING * spread:
        kind = dtype_name(dtype)
        raise ValueError(
            f"X: {kind} loses {(lost / spread).item():.0%} of what tells the samples apart: subtract their mean, "
            'divide them by their typical size, or take dtype="float64"'
        )


def target(out: np.ndarray | None, shape: tuple[int, int]) -> Tensor | None:
    """Return the caller's array as a tensor that shares its memory, for writing."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float32, np.float64) or not out.flags.writeable:
        got = f"{type(out).__name__} of {getattr(out, 'dtype', 'no numbers')}"
        raise TypeError(f"out: expected a writable numpy array of float32 or float64, got {got}")
    if out.shape != shape:
        raise ValueError(f"out: expected shape {shape}, got {out.shape}")
    if min(out.strides) < 0:
        raise ValueError(f"out: expected an array that runs forward in memory, got strides {out.strides}")
    return torch.from_numpy(out)


def write(tensor: Tensor, like: Any, columns: Any = None, *, same_rows: bool = True) -> Any:
    """Convert a tensor to the type of `like`.

    `columns` are the column names of a data frame; with `same_rows` its row names are those of `like`.
    """
    if isinstance(like, Tensor):
        return tensor.to(like.device)
    array = tensor.detach().cpu().numpy()
    if is_frame(like) and columns is not None:
        return type(like)(array, index=like.index if same_rows else None, columns=columns)
    return array


def named(model: Any, samples: np.ndarray) -> Any:
    """Return samples as a data frame if the model was fitted to one: without their names it warns of them."""
    frame = empty_frame() if hasattr(model, "feature_names_in_") else None
    return samples if frame is None else type(frame)(samples, columns=model.feature_names_in_)


def empty_frame() -> Any:
    """Return an empty pandas data frame, or None if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        return None
    return pandas.DataFrame()
