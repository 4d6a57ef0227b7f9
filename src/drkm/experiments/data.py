"""The data of the experiments by name: how they are loaded, and the checksum that is part of the key of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from drkm.datasets import DatasetInfo, FactorDataset, Source, list_datasets, source_of
from drkm.datasets.downloads import file_checksum


@lru_cache(maxsize=2)
def load(name: str) -> FactorDataset:
    """Return a dataset by name; the last two are cached, because a sweep runs one dataset after the other."""
    info, source = _source(name)
    return info.load(**source.options)


def checksum(name: str) -> str:
    """Return a checksum of these data, or raise an error that says how to get them."""
    info, source = _source(name)
    if not source.reads:
        return source.made
    states = [(path, path.stat()) for path in info.to_read()]
    digests = [_file_digest(path, state.st_size, state.st_mtime_ns) for path, state in states]
    return hashlib.sha256("\n".join([*digests, source.made]).encode()).hexdigest()


def dataset_checksum(parameters: Mapping[str, Any]) -> str:
    """Return the checksum of the dataset named in the parameters of a run."""
    return checksum(parameters["dataset"])


def _source(name: str) -> tuple[DatasetInfo, Source]:
    found = source_of(name)
    if found is None:
        known = [source.name for info in list_datasets() for source in info.sources]
        raise ValueError(f"dataset: unknown name {name!r}, allowed are {', '.join(known)}")
    return found


@cache
def _file_digest(path: Path, size: int, changed: int) -> str:
    """Return the checksum of a file; `size` and `changed` are cache keys, so that a modified file is read again."""
    return file_checksum(path, "sha256")
