"""Damaged data files, by the thousands: each is read, or refused with one sentence that names it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import drkm
from fuzz.mutations import COPIES_IN_PART, PARTS

pytest.importorskip("resource", reason="limits of a process are those of Unix")
if not Path("/proc/self/statm").exists():
    pytest.skip("the limit of memory is set above what is in use, which only Linux tells", allow_module_level=True)

SCRIPT = Path(__file__).parent / "data_readers.py"
#: the package under test, and the makers of small dataset files
PLACES = (Path(drkm.__file__).parent.parent, Path(__file__).parent.parent / "datasets")
#: the most common formats
COMMON = (
    *("npy", "npz", "csv", "png", "tif", "hdf5"),
    *("cars3d", "cars3d-compact", "smallnorb-factors", "smallnorb-compact"),
)
OTHERS = (
    *("jpg", "bmp", "gif", "webp", "ppm", "hdf5-plain", "hdf5-checked", "dsprites", "smallnorb-images"),
    # damaged before they were packed into an archive with checksums
    *("npz-inside", "cars3d-inside", "smallnorb-inside"),
)


def fuzz(folder, count, *kinds, seed=0):
    """Return the outcomes for damaged copies of files of each kind; a crash or a hang ends the process."""
    command = [sys.executable, str(SCRIPT), str(folder), str(count), str(seed), *kinds]
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PLACES))}
    done = subprocess.run(command, capture_output=True, text=True, env=places)
    assert done.returncode == 0, f"{done.returncode} after {done.stdout}: {done.stderr}; the file is in {folder}"
    *_, last = found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 2 * len(kinds), last
    return found[1::2]


def test_a_few_hundred_damaged_copies_of_each_kind_are_read_or_refused(tmp_path):
    pytest.importorskip("h5py")
    pytest.importorskip("PIL")
    for found in fuzz(tmp_path, 200, *COMMON):
        assert found["problems"] == []
        assert found["refused"] > 50


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", COMMON + OTHERS)
def test_ten_thousand_damaged_copies_are_read_or_refused(kind, part, tmp_path):
    pytest.importorskip("h5py")
    pytest.importorskip("PIL")
    (found,) = fuzz(tmp_path, COPIES_IN_PART, kind, seed=part)
    assert found["problems"] == []
    assert found["read"] + found["refused"] == COPIES_IN_PART
