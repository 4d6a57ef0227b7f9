"""Data of the experiments by name: how each is loaded, and the checksum that enters the key of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from drkm.datasets import (
    FactorDataset,
    cars3d,
    data_dir,
    dsprites,
    load_cars3d,
    load_dsprites,
    load_noisy_dsprites,
    load_smallnorb,
    smallnorb,
)
from drkm.datasets.downloads import CARS3D, DSPRITES, SMALLNORB_TESTING, file_checksum, missing

#: raised by whoever changes what is drawn, so that results of other pictures are not taken for those of these
DRAWING = 1
NOISE = 1


@dataclass(frozen=True)
class Source:
    """Where the images of a name come from.

    Attributes
    ----------
    load : callable
        Returns the dataset.
    files : tuple of tuple of str
        Sets of files that the loader reads, the first that is there; () where images are drawn.
    made : str
        Version of what is drawn or added to the files by code.
    dataset : str
        The name under which `drkm datasets download` knows the files.
    """

    load: Callable[[], FactorDataset]
    files: tuple[tuple[str, ...], ...] = ()
    made: str = ""
    dataset: str = ""


_DSPRITES_FILES = ((DSPRITES.name,), (dsprites.COMPACT,))
SOURCES: dict[str, Source] = {
    "sprites": Source(lambda: load_dsprites(source="rendered"), made=f"drawn {DRAWING}"),
    "noisy_sprites": Source(lambda: load_noisy_dsprites(source="rendered"), made=f"drawn {DRAWING}, noise {NOISE}"),
    "dsprites": Source(lambda: load_dsprites(source="file"), _DSPRITES_FILES, dataset="dsprites"),
    "noisy_dsprites": Source(
        lambda: load_noisy_dsprites(source="file"), _DSPRITES_FILES, made=f"noise {NOISE}", dataset="dsprites"
    ),
    "cars3d": Source(load_cars3d, ((CARS3D.name,), (cars3d.COMPACT,)), dataset="cars3d"),
    "smallnorb": Source(
        load_smallnorb,
        (tuple(file.name for file in SMALLNORB_TESTING), (smallnorb.COMPACT,)),
        dataset="smallnorb",
    ),
}


@lru_cache(maxsize=2)
def load(name: str) -> FactorDataset:
    """Return the images of a name; the last two are kept, because the runs of a sweep come in that order."""
    return _source(name).load()


def checksum(name: str) -> str:
    """Return what tells these data from others of the same name, or say how to get them."""
    source = _source(name)
    if not source.files:
        return source.made
    digests = [_file_digest(path, *_stamp(path)) for path in _present(source)]
    return hashlib.sha256("\n".join([*digests, source.made]).encode()).hexdigest()


def dataset_checksum(parameters: Mapping[str, Any]) -> str:
    """Return the checksum of the dataset that the parameters of a run name."""
    return checksum(parameters["dataset"])


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise ValueError(f"dataset: unknown name {name!r}, allowed are {', '.join(SOURCES)}")
    return SOURCES[name]


def _present(source: Source) -> list[Path]:
    folder = data_dir()
    for names in source.files:
        paths = [folder / file for file in names]
        if all(path.is_file() for path in paths):
            return paths
    raise missing(source.dataset, None, *(names[0] for names in source.files))


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@cache
def _file_digest(path: Path, size: int, changed: int) -> str:
    """Return the checksum of a file, computed once for each state of it: size and time only tell states apart."""
    return file_checksum(path, "sha256")
