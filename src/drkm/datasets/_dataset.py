"""The description of an image dataset besides its loader, for the catalogue, downloads and experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from drkm.datasets._factors import FactorDataset
from drkm.datasets.downloads import RemoteFile, data_dir, missing
from drkm.validation.registry import Registry

Loader = TypeVar("Loader", bound=Callable[..., FactorDataset])


@dataclass(frozen=True)
class Source:
    """Images of a dataset as experiments use them.

    Attributes
    ----------
    name, title : str
        Names in runs and in tables.
    options : mapping
        Arguments of the loader.
    made : str
        Version of the code that draws or adds noise, so that results of other images are not reused.
    reads : bool
        Whether the loader reads the files of the dataset.
    """

    name: str
    title: str
    options: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""
    reads: bool = True


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: what it is, its licence, its original files and its compact copy.

    `drawn` says that it needs no file; `read` lists the files that the loader reads by default, all if it is not given;
    `sources` lists what experiments use of it.
    """

    name: str
    about: str
    licence: str
    files: tuple[RemoteFile, ...]
    compact: str
    load: Callable[..., FactorDataset]
    drawn: bool = False
    read: tuple[RemoteFile, ...] = ()
    sources: tuple[Source, ...] = ()

    def present(self) -> list[Path]:
        """Return the files of this dataset that are in the data folder."""
        names = [*(file.name for file in self.files), self.compact]
        return [path for name in names if (path := data_dir() / name).is_file()]

    def to_read(self) -> list[Path]:
        """Return the files that the loader reads: the original ones if all are in the data folder, else the compact."""
        originals = [data_dir() / file.name for file in self.read or self.files]
        for paths in (originals, [data_dir() / self.compact]):
            if all(path.is_file() for path in paths):
                return paths
        raise missing(self.name, None, originals[0].name, self.compact)


#: all datasets by name, in the order of lists
DATASETS: Registry[DatasetInfo] = Registry("dataset", "datasets")


def dataset(name: str, **facts: Any) -> Callable[[Loader], Loader]:
    """Register the loader of a dataset; `facts` are the other attributes of `DatasetInfo`."""

    def known(load: Loader) -> Loader:
        DATASETS.add(name, DatasetInfo(name, load=load, **facts), load)
        return load

    return known


def source_of(name: str) -> tuple[DatasetInfo, Source] | None:
    """Return the source with that name in experiments, with its dataset."""
    every = ((info, source) for info in DATASETS.values() for source in info.sources)
    return next(((info, source) for info, source in every if source.name == name), None)
