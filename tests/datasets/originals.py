"""Small files in the formats of the original ones, made for the tests."""

import gzip
import io
import struct
import tarfile

import numpy as np
from scipy.io import savemat

from drkm.datasets import cars3d, smallnorb
from drkm.datasets.dsprites import RenderedDSprites

DSPRITES_SIZES = (3, 2, 3, 2, 2)


def dsprites_npz(path, sizes=DSPRITES_SIZES, images=None, classes=None):
    """Write the arrays of the original file, including its pickled dict."""
    grid = np.stack(np.unravel_index(np.arange(np.prod(sizes)), (1, *sizes)), axis=1)
    if images is None:
        images = RenderedDSprites().images_at(grid[:, 1:]) // 255
    metadata = np.empty((), dtype=object)
    metadata[()] = {"title": "dSprites"}
    np.savez_compressed(
        path,
        metadata=metadata,
        imgs=images,
        latents_classes=grid if classes is None else classes,
        latents_values=grid.astype(float),
    )
    return path


def compact_npz(path, names, sizes, image_shape, seed=0, **replaced):
    """Write a compact file for the whole grid of `sizes`, with smooth random images."""
    grid = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)
    images = np.random.default_rng(seed).integers(0, 256, (len(grid), *image_shape), dtype=np.uint8)
    images[:, 8:] = images[:, :1]
    arrays = {"images": images, "factors": grid.astype(np.int16), "factor_names": np.array(names)}
    np.savez_compressed(path, **{k: v for k, v in (arrays | replaced).items() if v is not None})
    return path


def car(seed, azimuths, elevations):
    """Return views of one car in the layout of the original: y, x, channel, azimuth, elevation."""
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 8, 3, azimuths, elevations))
    return np.kron(coarse, np.ones((16, 16, 1, 1, 1))).astype(np.uint8)


def mat_bytes(content, compress=True):
    stream = io.BytesIO()
    savemat(stream, content, do_compression=compress)
    return stream.getvalue()


def cars_tar(path, members):
    """Write a `.tar.gz` with the given {member name: bytes}."""
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def small_cars(monkeypatch, azimuths=2, elevations=1, objects=2):
    monkeypatch.setattr(cars3d, "AZIMUTHS", azimuths)
    monkeypatch.setattr(cars3d, "ELEVATIONS", elevations)
    monkeypatch.setattr(cars3d, "OBJECTS", objects)


def norb_matrix(path, array):
    magic = {np.dtype(np.uint8): 0x1E3D4C55, np.dtype(np.int32): 0x1E3D4C54}[array.dtype]
    sizes = list(array.shape) + [1] * (3 - array.ndim)
    with gzip.open(path, "wb") as stream:
        stream.write(struct.pack(f"<ii{len(sizes)}i", magic, array.ndim, *sizes) + array.tobytes())
    return path


def small_norb(monkeypatch, folder, sizes=(5, 10, 1, 2, 1), seed=0):
    """Write both splits on a small grid, rows in random order; return views by (instance, category, azimuth)."""
    monkeypatch.setattr(smallnorb, "FACTOR_SIZES", sizes)
    rng = np.random.default_rng(seed)
    views = {}
    for split, held in smallnorb.INSTANCES.items():
        rows = [(c, i, 0, a, 0) for c in range(sizes[0]) for i in held for a in range(sizes[3])]
        factors = np.array(rows)[rng.permutation(len(rows))].astype(np.int32)
        images = np.zeros((len(rows), 2, 96, 96), np.uint8)
        images[:, 0] = np.kron(rng.integers(0, 256, (len(rows), 6, 6)), np.ones((16, 16)))
        images[:, 1] = 77
        for row, image in zip(factors, images[:, 0], strict=True):
            views[row[1], row[0], row[3]] = image
        details = factors[:, 1:] * np.array([1, 1, 2, 1], np.int32)
        dat, cat, info = (folder / file.name for file in smallnorb._FILES[split])
        norb_matrix(dat, images)
        norb_matrix(cat, np.ascontiguousarray(factors[:, 0]))
        norb_matrix(info, np.ascontiguousarray(details))
    return views
