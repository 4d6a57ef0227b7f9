"""Packed runs: small, the same bytes for the same runs, and refused if anything in them was changed."""

from __future__ import annotations

import json
import lzma

import pytest

from drkm.runs import packing
from drkm.runs.configuration import Configuration
from drkm.runs.merging import merge
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from runs.probes import TASKS

RUNS = [Configuration("probe", {"fail": seed == 2}, seed) for seed in range(4)]


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path, TASKS) as opened:
        sweep(RUNS, opened, jobs=1, progress=False)
    return path


@pytest.fixture
def packed(store, tmp_path):
    return pack(store, tmp_path / "runs.xz")


def pack(store, path):
    with Store(store, TASKS, readonly=True) as opened:
        rows = [row for row in opened.finished()[0] if row["status"] == "done"]
    packing.pack(rows, path, {"scale": "quick", "seeds": "4"})
    return path


def lines_of(path):
    return lzma.decompress(path.read_bytes()).decode().split("\n")


def rewritten(path, lines):
    path.write_bytes(lzma.compress("\n".join(lines).encode(), check=lzma.CHECK_SHA256))
    return path


def test_a_packed_file_is_read_like_a_store(store, packed):
    with Store(store, TASKS, readonly=True) as one, Store(packed, TASKS, readonly=True) as other:
        ours, theirs = one.results(RUNS), other.results(RUNS)
        assert len(theirs) == 3
        assert [theirs[run] for run in RUNS if run in theirs] == [ours[run] for run in RUNS if run in ours]
        assert other.unfinished(RUNS) == [RUNS[2]]
    assert packing.about(packed) == {"scale": "quick", "seeds": "4"}


def test_the_same_runs_give_the_same_bytes(store, packed, tmp_path):
    assert pack(store, tmp_path / "again.xz").read_bytes() == packed.read_bytes()
    assert pack(packed, tmp_path / "once-more.xz").read_bytes() == packed.read_bytes()


def test_a_packed_file_does_not_say_what_the_machine_is_called(packed):
    environments = [json.loads(json.loads(line)[-2]) for line in lines_of(packed)[1:]]
    assert environments
    assert not any("host" in environment for environment in environments)
    assert all("processor" in environment for environment in environments)


def test_runs_of_a_packed_file_are_not_computed_again(packed, tmp_path):
    with Store(tmp_path / "new.sqlite", TASKS) as opened:
        merged = merge(opened, packed)
        assert (merged.added, merged.damaged) == (3, 0)
        assert opened.unfinished(RUNS[:2]) == []


def test_a_packed_file_is_only_read(packed):
    with pytest.raises(ValueError, match=r"is packed and read-only; 'drkm merge NEW .*runs.xz' makes a store of it"):
        Store(packed, TASKS)


def test_a_changed_result_is_refused(packed):
    head, first, *rest = lines_of(packed)
    row = json.loads(first)
    place = packing.COLUMNS.index("result")
    row[place] = row[place].replace("digest", "digits")
    changed = rewritten(packed, [head, json.dumps(row), *rest])
    with (
        Store(changed, TASKS, readonly=True) as opened,
        pytest.raises(ValueError, match="1 of 3 runs have changed since they were written"),
    ):
        opened.results(RUNS)


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "a line less", "no head", "not a run", "a number too large", "newer"]
)
def test_a_damaged_file_is_refused_with_one_sentence(packed, damage):
    data, lines = packed.read_bytes(), lines_of(packed)
    if damage == "cut":
        packed.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        packed.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    else:
        head = {"drkm": packing.FORMAT + (damage == "newer"), "runs": 3 if damage == "newer" else 1}
        changed = {
            "a line less": lines[:-1],
            "no head": ["[]", *lines[1:]],
            "not a run": [json.dumps(head), "[1]"],
            "a number too large": [json.dumps(head), json.dumps([10**30, *json.loads(lines[1])[1:]])],
            "newer": [json.dumps(head), *lines[1:]],
        }
        rewritten(packed, changed[damage])
    with pytest.raises(ValueError, match=r"store: .*runs.xz (is damaged|was written by a newer drkm)"):
        Store(packed, TASKS, readonly=True)


def test_a_file_that_unpacks_to_too_much_is_refused(packed, monkeypatch):
    monkeypatch.setattr(packing, "MOST", 1 << 10)
    with pytest.raises(ValueError, match="is damaged, or larger than 0 MiB when unpacked"):
        Store(packed, TASKS, readonly=True)
