"""Where a checkpoint is stored: in one file or, for processes that share the samples, two files per process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files import container
from drkm.validation import parts

#: version 2 had flat states (`version_2`), version 3 the histories in the header
KIND, VERSION = "checkpoint", 4

Content = tuple[dict[str, Tensor], dict[str, Any]]


class Place(Protocol):
    """A storage place whose latest content is read, replaced as a whole, and removed."""

    def read(self, device: torch.device) -> Content | None:
        """Return the latest content, or None."""

    def write(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Replace the content."""

    def remove(self) -> None:
        """Delete the content."""


def place(path: Path) -> Place:
    """Return the place of the checkpoint with this path in the current fit."""
    return OneFile(path) if collectives.current() is None else TwoFiles(path)


class OneFile:
    """A file that is replaced atomically."""

    def __init__(self, path: Path):
        self.path = path

    def read(self, device: torch.device) -> Content | None:
        """Return the content of the file, if there is one."""
        return container.read(self.path, KIND, VERSION, device) if self.path.exists() else None

    def write(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Replace the file."""
        container.write(self.path, tensors, header)

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


class TwoFiles:
    """Two files per process, written in turn, each with the rows of that process.

    Processes exchange sums between any two writes, so that none is more than one write ahead of another. Whenever one
    is killed, there is therefore a write that all of them have: the last one or the one before.
    """

    def __init__(self, path: Path):
        shards = collectives.current()
        assert shards is not None
        self.path = path
        self._size = len(shards.counts)
        self._files = self._names(shards.rank)
        self._turn = 0

    def read(self, device: torch.device) -> Content | None:
        """Return the rows of this process from the latest write that all processes have."""
        self._refuse_others()
        contents = [_turn_and_content(file, device) for file in self._files if file.exists()]
        by_turn = dict(contents)
        common = -int(collectives.agreed(-max(by_turn, default=-1)))
        self._turn = common + 1
        if common < 0:
            return None
        if collectives.agreed(common not in by_turn):
            raise ValueError(
                f"checkpoint: the files {self.path}.* of the {self._size} processes do not belong together: "
                "remove them or choose another path"
            )
        return by_turn[common]

    def write(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Replace the older of the two files."""
        container.write(self._files[self._turn % 2], tensors, {**header, "turn": self._turn})
        self._turn += 1

    def remove(self) -> None:
        """Delete both files."""
        for file in self._files:
            file.unlink(missing_ok=True)

    def _names(self, rank: int) -> list[Path]:
        return [self.path.with_name(f"{self.path.name}.{rank}-of-{self._size}.{letter}") for letter in "ab"]

    def _refuse_others(self) -> None:
        ours = {file.name for rank in range(self._size) for file in self._names(rank)}
        found = [self.path, *self.path.parent.glob(f"{self.path.name}.*-of-*.[ab]")]
        foreign = [file for file in found if file.exists() and file.name not in ours]
        if collectives.agreed(bool(foreign)):
            raise ValueError(
                f"checkpoint: {self.path} belongs to a fit with another number of processes than {self._size}: "
                "remove it or choose another path"
            )


def _turn_and_content(file: Path, device: torch.device) -> tuple[int, Content]:
    """Return the number of a write and its content."""
    tensors, header = container.read(file, KIND, VERSION, device)
    try:
        parts.check(header, {"turn": parts.count()}, others=True)
    except ValueError as error:
        raise ValueError(f"checkpoint: {file} is damaged ({error}), remove it or choose another path") from error
    return header["turn"], (tensors, header)
