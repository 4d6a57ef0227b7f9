"""The original files of datasets: their folder, addresses and download."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from drkm.datasets._files import DatasetError


@dataclass(frozen=True)
class RemoteFile:
    """One original file: its name, its address, and its checksum as `algorithm:hex`."""

    name: str
    url: str
    checksum: str


def data_dir() -> Path:
    """Return the data folder: `DRKM_DATA` if set, else `drkm` in the platform's cache folder."""
    chosen = os.environ.get("DRKM_DATA")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = str(Path.home() / "Library" / "Caches")
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "drkm"


def find(path: str | os.PathLike[str] | None, *names: str) -> Path | None:
    """Return the first file of `names` in a folder, or `path` itself if it is a file.

    `path=None` means the data folder. A path that does not exist is an error; a folder without any of the
    files gives None.
    """
    if path is not None and not isinstance(path, str | os.PathLike):
        raise ValueError(f"path: expected a path or None, got {path!r}")
    folder = data_dir() if path is None else Path(path).expanduser()
    if path is not None and not folder.exists():
        raise DatasetError(f"{folder}: no such file or folder")
    if folder.is_file():
        return folder
    return next((folder / name for name in names if (folder / name).is_file()), None)


def missing(dataset: str, path: str | os.PathLike[str] | None, *names: str) -> DatasetError:
    """Return the error for a dataset without any of its files."""
    folder = data_dir() if path is None else Path(path)
    return DatasetError(
        f"{dataset}: found no {' or '.join(names)} in {folder}; fetch it with"
        f" 'drkm datasets download {dataset}' or drkm.datasets.download({dataset!r}),"
        " or place it there by hand, or give its path"
    )


def file_checksum(path: Path, algorithm: str) -> str:
    """Return the checksum of a file as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def is_intact(path: Path, file: RemoteFile) -> bool:
    """Whether a file has the checksum of the original."""
    algorithm, expected = file.checksum.split(":")
    return file_checksum(path, algorithm) == expected


def fetch(file: RemoteFile, folder: Path, progress: bool = True) -> Path:
    """Download one file to `folder` unless an intact copy exists, and return its path."""
    target = folder / file.name
    if target.is_file() and is_intact(target, file):
        return target
    try:
        import pooch
    except ImportError as error:
        raise DatasetError(
            f"downloading needs pooch: install drkm[data], or place {file.url} as {target} by hand"
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        downloader = pooch.HTTPDownloader(progressbar=progress, timeout=60)
        return Path(pooch.retrieve(file.url, file.checksum, file.name, str(folder), downloader=downloader))
    except (OSError, ValueError) as error:
        # requests' errors are OSErrors; pooch raises ValueError for a wrong checksum and keeps nothing then.
        kind = "arrived damaged" if isinstance(error, ValueError) else "could not be downloaded"
        raise DatasetError(
            f"{file.url} {kind} ({type(error).__name__}): when offline, fetch it elsewhere,"
            f" place it as {target} and check it with 'drkm datasets verify' (checksum {file.checksum})"
        ) from error
