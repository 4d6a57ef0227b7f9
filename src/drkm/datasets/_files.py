"""Reading of dataset files that may be damaged or of another kind, without pickle."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from drkm import files
from drkm.files import NpzFile, Refused


class DatasetError(ValueError):
    """A dataset file that is missing, damaged or of another kind."""


def reading(path: str | Path, what: str) -> AbstractContextManager[None]:
    """Turn any error inside the block into a `DatasetError` that names the file."""
    return files.reading(f"{path}:", f"is damaged or not {what}", DatasetError)


def read_compact(
    path: Path, what: str, factor_names: tuple[str, ...], image_shape: tuple[int, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read a compact `.npz`: `images` uint8, `factors` class indices, `factor_names`.

    Returns
    -------
    images : uint8 array of shape (n, *image_shape)
    factors : int64 array of shape (n, n_factors)
    """
    with reading(path, f"a compact {what} file"), NpzFile(path) as file:
        file.require("images", "factors", "factor_names")
        names = tuple(str(n) for n in file.read("factor_names", 1 << 16).ravel())
        if names != factor_names:
            raise Refused(f"is not {what}: its factors are {names}, expected {factor_names}")
        factors = file.read("factors", 1 << 28)
        images = file.read("images", 1 << 32)
        if images.dtype != np.uint8 or images.shape[1:] != image_shape or len(images) == 0:
            raise Refused(
                f"has an array 'images' that should be uint8 of shape (n, {', '.join(map(str, image_shape))}),"
                f" is {images.dtype} of {images.shape}"
            )
        if factors.dtype.kind not in "iu" or factors.shape != (len(images), len(names)):
            raise Refused(
                f"has an array 'factors' that should hold integers of shape ({len(images)}, {len(names)}),"
                f" is {factors.dtype} of {factors.shape}"
            )
    return images, factors.astype(np.int64)
