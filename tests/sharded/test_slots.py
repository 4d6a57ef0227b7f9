"""Checkpoints of processes that share the samples: after any one of them is killed there is one that all have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.training.checkpoint import slots
from drkm.training.checkpoint.slots import OneFile, TwoFiles, place
from sharded.threads import in_shards

CPU = torch.device("cpu")
HEADER = {"kind": slots.KIND, "version": slots.VERSION}
ROWS = torch.arange(6.0)[:, None]


def write(path: Path, times: list[int], begin: float = 0.0):
    """Write this many times in each of two processes, then read the checkpoint."""

    def work(rows: Tensor) -> None:
        place = TwoFiles(path)
        shards = collectives.current()
        assert shards is not None
        with collectives.shared(shards):
            place.read(CPU)
            for number in range(times[shards.rank]):
                place.write({"rows": rows + 10 * (number + begin)}, HEADER)

    in_shards((2, 4), work, ROWS)


def read(path: Path, counts: tuple[int, ...] = (2, 4)) -> list:
    return in_shards(counts, lambda rows: TwoFiles(path).read(CPU), ROWS)


def test_one_process_keeps_one_file(tmp_path):
    assert isinstance(place(tmp_path / "state"), OneFile)


def test_processes_get_their_rows_of_the_latest_write(tmp_path):
    write(tmp_path / "state", [3, 3])
    found = [content[0]["rows"] for content in read(tmp_path / "state")]
    assert torch.equal(torch.cat(found), ROWS + 20)


@pytest.mark.parametrize("times", [[4, 3], [3, 4], [2, 1]])
def test_a_process_killed_before_its_write_leaves_the_write_before(tmp_path, times):
    write(tmp_path / "state", times)
    found = [content[0]["rows"] for content in read(tmp_path / "state")]
    assert torch.equal(torch.cat(found), ROWS + 10 * (min(times) - 1))


def test_writes_go_on_from_the_one_that_was_found(tmp_path):
    write(tmp_path / "state", [4, 3])
    write(tmp_path / "state", [1, 1], begin=7)
    found = [content[0]["rows"] for content in read(tmp_path / "state")]
    assert torch.equal(torch.cat(found), ROWS + 70)


def test_a_first_write_that_not_all_have_is_none(tmp_path):
    write(tmp_path / "state", [1, 0])
    assert read(tmp_path / "state") == [None, None]


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    write(tmp_path / "state", [6, 6])
    kept = {file.name: file.read_bytes() for file in tmp_path.glob("state.0-*")}
    write(tmp_path / "state", [6, 6])
    for name, data in kept.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=r"checkpoint: the files .* of the 2 processes do not belong together"):
        read(tmp_path / "state")


@pytest.mark.parametrize("name", ["state", "state.0-of-3.a"])
def test_another_number_of_processes_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=r"checkpoint: .* another number of processes than 2"):
        read(tmp_path / "state")


def test_a_fit_that_ends_leaves_nothing(tmp_path):
    write(tmp_path / "state", [3, 3])
    in_shards((2, 4), lambda rows: TwoFiles(tmp_path / "state").remove(), ROWS)
    assert not list(tmp_path.iterdir())
