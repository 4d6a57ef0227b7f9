"""Cars3D: 183 car models seen from 4 elevations and 24 azimuths."""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import tarfile
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from drkm.datasets._dataset import Source, dataset
from drkm.datasets._factors import ArrayDataset, FactorDataset
from drkm.datasets._files import read_compact, reading
from drkm.datasets._resize import shrink
from drkm.datasets.downloads import RemoteFile, find, missing
from drkm.files import Refused, check_room

FACTOR_NAMES = ("elevation", "azimuth", "object_type")
ELEVATIONS, AZIMUTHS, OBJECTS = 4, 24, 183
IMAGE_SHAPE = (64, 64, 3)
COMPACT = "cars3d_64.npz"
CARS3D = RemoteFile(
    "nips2015-analogy-data.tar.gz",
    "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
    "md5:4e866a7919c1beedf53964e6f7a23686",
)

# Names that begin with a dot are metadata of a file system, not cars.
_MEMBER = re.compile(r"(?:^|/)cars/([^/.][^/]*)\.mat$")
_MAX_MEMBER = 1 << 26


def _read_car(data: bytes, member: str) -> NDArray[np.uint8]:
    """Return the views of one car, shape (elevations, azimuths, 64, 64, 3)."""
    from scipy.io import loadmat, whosmat

    with warnings.catch_warnings(action="ignore"):
        # Check the declared size first: a few kilobytes can unpack to gigabytes.
        declared = {name: f"{kind} of {shape}" for name, shape, kind in whosmat(io.BytesIO(data))}
        _check_views(member, declared.get("im", "missing"))
        views = loadmat(io.BytesIO(data), variable_names=["im"])["im"]
    _check_views(member, f"{views.dtype} of {views.shape}")
    images = np.ascontiguousarray(views.transpose(4, 3, 0, 1, 2)).reshape(-1, 128, 128, 3)
    return shrink(images).reshape(ELEVATIONS, AZIMUTHS, *IMAGE_SHAPE)


def _check_views(member: str, found: str) -> None:
    expected = f"uint8 of {(128, 128, 3, AZIMUTHS, ELEVATIONS)}"
    if found != expected:
        raise Refused(f"holds {member}, whose 'im' should be {expected}, is {found}")


def read_original(path: Path) -> ArrayDataset:
    """Read the original `.tar.gz`: members are read in memory, nothing is unpacked to disk.

    Objects are numbered in the order of their file names; 128×128 views are shrunk to 64×64 (Lanczos).
    """
    cars: dict[str, NDArray[np.uint8]] = {}
    with reading(path, "the original Cars3D archive"):
        # Peak memory: the single cars, and then all of them in one array.
        held = ELEVATIONS * AZIMUTHS * OBJECTS
        check_room(2 * held * math.prod(IMAGE_SHAPE), f"holds {held} images")
        with gzip.open(path) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    match = _MEMBER.search(member.name)
                    if match is None or not member.isreg():
                        continue
                    content = archive.extractfile(member)
                    if content is None or member.size > _MAX_MEMBER:
                        raise Refused(f"holds {member.name}, which is larger than expected")
                    if len(cars) == OBJECTS:
                        raise Refused(f"holds more than {OBJECTS} files data/cars/*.mat")
                    cars[match[1]] = _read_car(content.read(), member.name)
            # The checksum is at the very end: it is verified only if everything is read.
            while stream.read(1 << 20):
                pass
        if len(cars) != OBJECTS:
            raise Refused(f"should hold {OBJECTS} files data/cars/*.mat, holds {len(cars)}")
    images = np.empty((ELEVATIONS, AZIMUTHS, OBJECTS, *IMAGE_SHAPE), dtype=np.uint8)
    for i, name in enumerate(sorted(cars)):
        images[:, :, i] = cars.pop(name)
    sizes = (ELEVATIONS, AZIMUTHS, OBJECTS)
    grid = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)
    return ArrayDataset("cars3d", FACTOR_NAMES, sizes, images.reshape(-1, *IMAGE_SHAPE), grid)


def _read_compact(path: Path) -> ArrayDataset:
    images, factors = read_compact(path, "cars3d", FACTOR_NAMES, IMAGE_SHAPE)
    with reading(path, "a compact Cars3D file"):
        return ArrayDataset("cars3d", FACTOR_NAMES, (ELEVATIONS, AZIMUTHS, OBJECTS), images, factors)


@dataset(
    "cars3d",
    about="rendered cars: 4 elevations × 24 azimuths × 183 objects, 64×64×3",
    licence="none stated",
    files=(CARS3D,),
    compact=COMPACT,
    sources=(Source("cars3d", "Cars3D"),),
)
def load_cars3d(path: str | os.PathLike[str] | None = None) -> FactorDataset:
    """Load Cars3D: 4 elevations × 24 azimuths × 183 objects, 64×64×3.

    Parameters
    ----------
    path : path or None
        The original `nips2015-analogy-data.tar.gz`, a compact `.npz` (`images`, `factors`,
        `factor_names`), or a folder with one of them, the original first. None means the data folder.

    Returns
    -------
    FactorDataset
    """
    file = find(path, CARS3D.name, COMPACT)
    if file is None:
        raise missing("cars3d", path, CARS3D.name, COMPACT)
    return read_original(file) if file.name.endswith((".tar.gz", ".tgz")) else _read_compact(file)
