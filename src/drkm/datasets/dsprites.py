"""dSprites: drawn on demand, or read from the original file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drkm.datasets._dataset import Source, dataset
from drkm.datasets._factors import ArrayDataset, FactorDataset, Factors, Images
from drkm.datasets._files import read_compact, reading
from drkm.datasets._sprites import SHAPES, SIZE, render
from drkm.datasets.downloads import RemoteFile, find, missing
from drkm.files import NpzFile, Refused, check_room

FACTOR_NAMES = ("shape", "scale", "orientation", "pos_x", "pos_y")
FACTOR_SIZES = (3, 6, 40, 32, 32)
COMPACT = "dsprites_grid46080.npz"
DSPRITES = RemoteFile(
    "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    "https://github.com/deepmind/dsprites-dataset/raw/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    "md5:7da33b31b13a06f4b04a70402ce90c2e",
)
LICENCE = "Apache-2.0"
#: version of the drawing; raise it when the images change
DRAWING = 1


def _default_values() -> dict[str, NDArray]:
    return {
        "shape": np.arange(len(SHAPES)),
        "scale": np.linspace(0.5, 1, 6),
        "orientation": np.linspace(0, 2 * np.pi, 40),
        "pos_x": np.linspace(0, 1, 32),
        "pos_y": np.linspace(0, 1, 32),
    }


class RenderedDSprites(FactorDataset):
    """dSprites drawn on demand, on the published factor grid or any other.

    Parameters
    ----------
    values : mapping of factor name to 1-d array, or None
        Replaces the values of the factors it names: `shape` (0 square, 1 ellipse, 2 heart), `scale`
        (published: 0.5 to 1), `orientation` (radians), `pos_x` and `pos_y` (published: 0 to 1).
    """

    def __init__(self, values: Mapping[str, ArrayLike] | None = None) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise ValueError(f"values: expected a mapping of factor names to arrays, got {values!r}")
        self.values = _default_values()
        for name, given in (values or {}).items():
            if name not in self.values:
                raise ValueError(f"values: unknown name {name!r}, allowed are {', '.join(FACTOR_NAMES)}")
            self.values[name] = _check_values(name, given)
        super().__init__("dsprites", FACTOR_NAMES, [len(v) for v in self.values.values()], (SIZE, SIZE))

    def _images(self, factors: Factors, rows: NDArray[np.int64]) -> Images:
        return render(*(self.values[name][factors[:, j]] for j, name in enumerate(FACTOR_NAMES)))


def _check_values(name: str, given: ArrayLike) -> NDArray:
    values = np.asarray(given)
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
        raise ValueError(f"values: expected a 1-d array of finite numbers for {name}, got {given!r}")
    if name == "shape":
        if not np.all(np.isin(values, np.arange(len(SHAPES)))):
            raise ValueError(f"values: expected 0 (square), 1 (ellipse) and 2 (heart) for shape, got {given!r}")
        return values.astype(np.int64)
    if name == "scale" and values.min() <= 0:
        raise ValueError(f"values: expected numbers above 0 for scale, got {values.min()}")
    if np.abs(values).max() > 1e3:
        raise ValueError(f"values: expected numbers between -1000 and 1000 for {name}, got {given!r}")
    return values.astype(np.float64)


class PackedDSprites(FactorDataset):
    """The original images, kept in memory as single bits (360 MiB for all 737,280)."""

    def __init__(self, packed: NDArray[np.uint8], factor_sizes: tuple[int, ...] = FACTOR_SIZES) -> None:
        super().__init__("dsprites", FACTOR_NAMES, factor_sizes, (SIZE, SIZE))
        self._packed = packed

    def _images(self, factors: Factors, rows: NDArray[np.int64]) -> Images:
        bits = np.unpackbits(self._packed[rows], axis=1)
        return (bits * np.uint8(255)).reshape(-1, SIZE, SIZE)


def read_original(path: Path, factor_sizes: tuple[int, ...] = FACTOR_SIZES) -> PackedDSprites:
    """Read the original `.npz`: its images and latent classes, never its pickled metadata."""
    n = int(np.prod(factor_sizes))
    with reading(path, "the original dSprites file"), NpzFile(path) as file:
        file.require("imgs", "latents_classes")
        check_room(n * SIZE * SIZE // 8, f"holds {n} images")
        packed = np.empty((n, SIZE * SIZE // 8), dtype=np.uint8)
        grid = (1, *factor_sizes)
        classes = file.read("latents_classes", 1 << 28)
        if not np.array_equal(classes, np.stack(np.unravel_index(np.arange(n), grid), axis=1)):
            raise Refused(f"has 'latents_classes' that are not the rows of the factor grid {grid} in order")
        for start, images in file.read_rows("imgs", (n, SIZE, SIZE), "uint8"):
            if images.max() > 1:
                raise Refused(f"has pixels that should be 0 or 1, found {images.max()}")
            packed[start : start + len(images)] = np.packbits(images.reshape(len(images), -1), axis=1)
    return PackedDSprites(packed, factor_sizes)


def _read_file(path: Path) -> FactorDataset:
    with reading(path, "a dSprites file"), NpzFile(path) as file:
        original = "imgs" in file.names()
    if original:
        return read_original(path)
    images, factors = read_compact(path, "dsprites", FACTOR_NAMES, (SIZE, SIZE))
    with reading(path, "a compact dSprites file"):
        if images.max() == 1:
            images = images * np.uint8(255)
        return ArrayDataset("dsprites", FACTOR_NAMES, FACTOR_SIZES, images, factors)


@dataset(
    "dsprites",
    about="white shapes on black: 3 shapes × 6 scales × 40 orientations × 32 × 32 positions, 64×64",
    licence=LICENCE,
    files=(DSPRITES,),
    compact=COMPACT,
    drawn=True,
    sources=(
        Source("sprites", "drawn dSprites", {"source": "rendered"}, made=f"drawn {DRAWING}", reads=False),
        Source("dsprites", "dSprites", {"source": "file"}),
    ),
)
def load_dsprites(
    path: str | os.PathLike[str] | None = None,
    *,
    source: str = "auto",
    values: Mapping[str, ArrayLike] | None = None,
) -> FactorDataset:
    """Load dSprites: 3 shapes × 6 scales × 40 orientations × 32 × 32 positions, 64×64, values 0 and 255.

    Parameters
    ----------
    path : path or None
        The original `.npz`, a compact one (`images`, `factors`, `factor_names`), or a folder with
        one of them, the original first. None means the data folder.
    source : {"auto", "rendered", "file"}
        `"rendered"` draws the images without a file; `"file"` reads them; `"auto"` reads the file if there
        is one and draws otherwise.
    values : mapping or None
        Another factor grid to draw, see `RenderedDSprites`; only without a file.

    Returns
    -------
    FactorDataset
    """
    if source not in ("auto", "rendered", "file"):
        raise ValueError(f"source: expected 'auto', 'rendered' or 'file', got {source!r}")
    if source == "rendered" and path is not None:
        raise ValueError(f"path: expected None with source='rendered', got {path!r}")
    if values is not None and (source == "file" or path is not None):
        raise ValueError("values: another grid can only be drawn, not read from a file")
    if source == "rendered" or values is not None:
        return RenderedDSprites(values)
    file = find(path, DSPRITES.name, COMPACT)
    if file is not None:
        return _read_file(file)
    if source == "file" or path is not None:
        raise missing("dsprites", path, DSPRITES.name, COMPACT)
    return RenderedDSprites()
