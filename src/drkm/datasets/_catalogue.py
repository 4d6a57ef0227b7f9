"""The catalogue of datasets: their files, downloads and verification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drkm.datasets import downloads
from drkm.datasets._dataset import DATASETS, DatasetInfo
from drkm.datasets._files import DatasetError


@dataclass(frozen=True)
class FileCheck:
    """The state of one file: "ok", "missing" or "damaged"; `message` gives details."""

    dataset: str
    path: Path
    state: str
    message: str


def list_datasets() -> list[DatasetInfo]:
    """Return the descriptions of all image datasets."""
    return list(DATASETS.values())


def _info(name: str) -> DatasetInfo:
    if name not in DATASETS:
        raise ValueError(f"name: unknown name {name!r}, allowed are {', '.join(DATASETS)}")
    return DATASETS[name]


def download(name: str, *, progress: bool = True) -> list[Path]:
    """Download the original files of a dataset to the data folder and verify them.

    Existing intact files are kept.

    Returns
    -------
    list of Path
    """
    return [downloads.fetch(file, downloads.data_dir(), progress) for file in _info(name).files]


def verify(name: str | None = None) -> list[FileCheck]:
    """Verify the files in the data folder: original ones by checksum, compact ones by reading them completely.

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
