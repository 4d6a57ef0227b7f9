"""The original files of datasets: where they live, where they come from, and how to fetch them."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from drkm.datasets._files import DatasetError

_NORB = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"


@dataclass(frozen=True)
class RemoteFile:
    """One original file: its name, its address, and its checksum as ``algorithm:hex``."""

    name: str
    url: str
    checksum: str


def _norb(split: str, instances: str, part: str, sha256: str) -> RemoteFile:
    name = f"smallnorb-5x{instances}x9x18x6x2x96x96-{split}-{part}.mat.gz"
    return RemoteFile(name, _NORB + name, f"sha256:{sha256}")


DSPRITES = RemoteFile(
    "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    "https://github.com/deepmind/dsprites-dataset/raw/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    "md5:7da33b31b13a06f4b04a70402ce90c2e",
)
CARS3D = RemoteFile(
    "nips2015-analogy-data.tar.gz",
    "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
    "md5:4e866a7919c1beedf53964e6f7a23686",
)
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


def data_dir() -> Path:
    """Return the data folder: ``DRKM_DATA`` where set, else ``drkm`` in the platform's cache folder."""
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
    """Return the first file of ``names`` in a folder, or ``path`` itself where it is a file.

    ``path=None`` means the data folder. A path that does not exist is an error; a folder without any of the
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
    """Return the error for a dataset with none of its files in place."""
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
    """Download one file into ``folder`` unless an intact copy is there, and return its path."""
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
