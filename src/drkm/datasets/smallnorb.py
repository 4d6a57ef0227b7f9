"""SmallNORB: toys of five categories from 9 elevations and 18 azimuths under 6 lights."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from drkm.datasets._dataset import Source, dataset
from drkm.datasets._factors import ArrayDataset, FactorDataset
from drkm.datasets._files import DatasetError, read_compact, reading
from drkm.datasets._resize import shrink
from drkm.datasets.downloads import RemoteFile, find, missing
from drkm.files import Refused, check_room

FACTOR_NAMES: tuple[str, ...] = ("category", "instance", "elevation", "azimuth", "lighting")
FACTOR_SIZES: tuple[int, ...] = (5, 10, 9, 18, 6)
IMAGE_SHAPE = (64, 64)
COMPACT = "smallnorb_inst0_left_64.npz"
INSTANCES = {"testing": (0, 1, 2, 3, 5), "training": (4, 6, 7, 8, 9)}

_ADDRESS = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"


def _norb(split: str, instances: str, part: str, sha256: str) -> RemoteFile:
    name = f"smallnorb-5x{instances}x9x18x6x2x96x96-{split}-{part}.mat.gz"
    return RemoteFile(name, _ADDRESS + name, f"sha256:{sha256}")


SMALLNORB_TRAINING = (
    _norb("training", "46789", "dat", "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    _norb("training", "46789", "cat", "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    _norb("training", "46789", "info", "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
)
SMALLNORB_TESTING = (
    _norb("testing", "01235", "dat", "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    _norb("testing", "01235", "cat", "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    _norb("testing", "01235", "info", "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
)
_FILES = {"testing": SMALLNORB_TESTING, "training": SMALLNORB_TRAINING}
_DTYPES: dict[int, np.dtype] = {0x1E3D4C55: np.dtype("<u1"), 0x1E3D4C54: np.dtype("<i4")}
_BLOCK = 256


def read_matrix(path: Path, shape: tuple[int, ...], dtype: str) -> Iterator[NDArray]:
    """Yield blocks of rows of one `.mat.gz` file of exactly this shape and type.

    Little-endian: int32 magic number (the type), int32 number of dimensions, three or more int32 sizes, data.
    """
    with reading(path, "an original SmallNORB file"), gzip.open(path) as stream:
        magic, ndim = struct.unpack("<ii", stream.read(8))
        found = _DTYPES.get(magic)
        if found is None or not 1 <= ndim <= 8:
            raise Refused(f"is not a SmallNORB matrix (magic number {magic:#x}, {ndim} dimensions)")
        stored = max(3, ndim)
        sizes = struct.unpack(f"<{stored}i", stream.read(4 * stored))[:ndim]
        if sizes != shape or found != np.dtype(dtype):
            raise Refused(f"should hold {dtype} of shape {shape}, holds {found} of {sizes}")
        row_bytes = int(np.prod(shape[1:])) * found.itemsize
        check_room(shape[0] * row_bytes, f"declares {dtype} of shape {shape}")
        for start in range(0, shape[0], _BLOCK):
            rows = min(_BLOCK, shape[0] - start)
            yield np.frombuffer(stream.read(rows * row_bytes), dtype=found).reshape(rows, *shape[1:])
        if stream.read(1):
            raise Refused("is longer than its header says")


def _read_split(folder: Path, files: tuple[RemoteFile, ...], instance: int | None) -> tuple[NDArray, NDArray]:
    """Return images and five factors of one split, all instances or one."""
    n = int(np.prod(FACTOR_SIZES)) // len(INSTANCES)
    dat, cat, info = (folder / file.name for file in files)
    for file in (dat, cat, info):
        if not file.is_file():
            raise missing("smallnorb", folder, file.name)
    category = np.concatenate(list(read_matrix(cat, (n,), "int32")))
    details = np.concatenate(list(read_matrix(info, (n, 4), "int32")))
    factors = np.column_stack([category, details]).astype(np.int64)
    # Azimuths are stored in steps of 20 degrees as 0, 2, …, 34.
    factors[:, 3] //= 2
    wanted = np.ones(n, dtype=bool) if instance is None else factors[:, 1] == instance
    images, start = [], 0
    for block in read_matrix(dat, (n, 2, 96, 96), "uint8"):
        images.append(shrink(block[wanted[start : start + len(block)], 0]))
        start += len(block)
    return np.concatenate(images), factors[wanted]


def read_original(folder: Path, instance: int | None = 0) -> ArrayDataset:
    """Read the original files of a folder: left camera, shrunk from 96×96 to 64×64 (Lanczos).

    One instance (of the split that holds it) gives the four other factors; None gives all five.
    """
    splits = [split for split, held in INSTANCES.items() if instance is None or instance in held]
    parts = [_read_split(folder, _FILES[split], instance) for split in splits]
    images = np.concatenate([part[0] for part in parts])
    factors = np.concatenate([part[1] for part in parts])
    names, sizes = FACTOR_NAMES, FACTOR_SIZES
    if instance is not None:
        names, sizes = (names[0], *names[2:]), (sizes[0], *sizes[2:])
        factors = np.delete(factors, 1, axis=1)
    with reading(folder, "a folder of original SmallNORB files"):
        order = np.lexsort(factors.T[::-1])
        data = ArrayDataset("smallnorb", names, sizes, images[order], factors[order])
        if len(data) != np.prod(sizes):
            raise Refused(f"should hold {np.prod(sizes)} images, holds {len(data)}")
    return data


def _read_compact(path: Path, instance: int | None) -> ArrayDataset:
    if instance != 0:
        raise DatasetError(f"{path}: holds instance 0 alone, got instance={'all' if instance is None else instance!r}")
    names, sizes = (FACTOR_NAMES[0], *FACTOR_NAMES[2:]), (FACTOR_SIZES[0], *FACTOR_SIZES[2:])
    images, factors = read_compact(path, "smallnorb", names, IMAGE_SHAPE)
    with reading(path, "a compact SmallNORB file"):
        return ArrayDataset("smallnorb", names, sizes, images, factors)


@dataset(
    "smallnorb",
    about="photographed toys: 5 categories × 10 instances × 9 elevations × 18 azimuths × 6 lights, 64×64",
    licence="research only, not for sale",
    files=SMALLNORB_TESTING + SMALLNORB_TRAINING,
    compact=COMPACT,
    read=SMALLNORB_TESTING,
    sources=(Source("smallnorb", "SmallNORB"),),
)
def load_smallnorb(path: str | os.PathLike[str] | None = None, *, instance: int | str = 0) -> FactorDataset:
    """Load SmallNORB, left camera, 64×64.

    Parameters
    ----------
    path : path or None
        A folder with the original `.mat.gz` files, or a compact `.npz` (`images`, `factors`,
        `factor_names`) or a folder with it; the original first. None means the data folder.
    instance : int from 0 to 9, or "all"
        One toy of each category: 5 categories × 9 elevations × 18 azimuths × 6 lights. `"all"` adds the ten
        instances as a factor after the category, and needs the files of both splits.

    Returns
    -------
    FactorDataset
    """
    if instance != "all" and (isinstance(instance, str | bool) or instance not in range(FACTOR_SIZES[1])):
        raise ValueError(f"instance: expected 0 to {FACTOR_SIZES[1] - 1} or 'all', got {instance!r}")
    chosen = None if isinstance(instance, str) else int(instance)
    split = "training" if chosen in INSTANCES["training"] else "testing"
    file = find(path, _FILES[split][0].name, COMPACT)
    if file is None:
        raise missing("smallnorb", path, _FILES[split][0].name, COMPACT)
    if file.name.endswith(".mat.gz"):
        return read_original(file.parent, chosen)
    return _read_compact(file, chosen)
