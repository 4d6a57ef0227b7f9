"""Which datasets there are, whether their files are in place, and whether the files are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from drkm.datasets import cars3d, downloads, dsprites, smallnorb
from drkm.datasets._factors import FactorDataset
from drkm.datasets._files import DatasetError


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: what it is, its licence, its original files and its compact copy.

    ``drawn`` says that it works without any file.
    """

    name: str
    about: str
    licence: str
    files: tuple[downloads.RemoteFile, ...]
    compact: str
    drawn: bool
    load: Callable[..., FactorDataset]

    def present(self) -> list[Path]:
        """Return the files of this dataset that are in the data folder."""
        names = [*(file.name for file in self.files), self.compact]
        return [path for name in names if (path := downloads.data_dir() / name).is_file()]


@dataclass(frozen=True)
class FileCheck:
    """One file after :func:`verify`: ``state`` is "ok", "missing" or "damaged", ``message`` says more."""

    dataset: str
    path: Path
    state: str
    message: str


_DSPRITES = DatasetInfo(
    "dsprites",
    "white shapes on black: 3 shapes × 6 scales × 40 orientations × 32 × 32 positions, 64×64",
    "Apache-2.0",
    (downloads.DSPRITES,),
    dsprites.COMPACT,
    True,
    dsprites.load_dsprites,
)
_CATALOGUE = {
    info.name: info
    for info in (
        _DSPRITES,
        replace(_DSPRITES, name="noisy_dsprites", about="dSprites on a noisy background, 64×64×3; made from dsprites"),
        DatasetInfo(
            "cars3d",
            "rendered cars: 4 elevations × 24 azimuths × 183 objects, 64×64×3",
            "none stated",
            (downloads.CARS3D,),
            cars3d.COMPACT,
            False,
            cars3d.load_cars3d,
        ),
        DatasetInfo(
            "smallnorb",
            "photographed toys: 5 categories × 10 instances × 9 elevations × 18 azimuths × 6 lights, 64×64",
            "research only, not for sale",
            downloads.SMALLNORB_TESTING + downloads.SMALLNORB_TRAINING,
            smallnorb.COMPACT,
            False,
            smallnorb.load_smallnorb,
        ),
    )
}


def list_datasets() -> list[DatasetInfo]:
    """Return what is known about every image dataset."""
    return list(_CATALOGUE.values())


def _info(name: str) -> DatasetInfo:
    if name not in _CATALOGUE:
        raise ValueError(f"name: unknown name {name!r}, allowed are {', '.join(_CATALOGUE)}")
    return _CATALOGUE[name]


def download(name: str, *, progress: bool = True) -> list[Path]:
    """Fetch the original files of a dataset into the data folder and check them.

    Files that are there and intact are left alone.

    Returns
    -------
    list of Path
    """
    return [downloads.fetch(file, downloads.data_dir(), progress) for file in _info(name).files]


def verify(name: str | None = None) -> list[FileCheck]:
    """Check the files in the data folder: original ones by checksum, compact ones by reading them whole.

    Parameters
    ----------
    name : str or None
        One dataset, or all.
    """
    checks = []
    for info in list_datasets() if name is None else [_info(name)]:
        compact = downloads.data_dir() / info.compact
        for file in info.files:
            path = downloads.data_dir() / file.name
            if not path.is_file():
                hint = f"download it, or place {file.url} there"
                if info.drawn:
                    hint = "not needed: images are drawn"
                elif compact.is_file():
                    hint = f"{info.compact} is read in its place"
                checks.append(FileCheck(info.name, path, "missing", hint))
            elif downloads.is_intact(path, file):
                checks.append(FileCheck(info.name, path, "ok", file.checksum))
            else:
                checks.append(FileCheck(info.name, path, "damaged", f"its checksum is not {file.checksum}"))
        if compact.is_file():
            try:
                checks.append(FileCheck(info.name, compact, "ok", f"compact: {len(info.load(compact)):,} images"))
            except DatasetError as error:
                checks.append(FileCheck(info.name, compact, "damaged", str(error)))
    return checks
