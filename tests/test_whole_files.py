"""Atomic writes leave no temporary files, even if their process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from drkm.files import write_whole, write_whole_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs SIGKILL and file locks")

WRITERS = {
    "file": (write_whole, lambda path: lambda file: file.write(b"content")),
    "folder": (write_whole_folder, lambda path: lambda folder: (folder / "inside").write_bytes(b"content")),
}

HALFWAY = textwrap.dedent(
    """
    import pathlib, sys, time
    from drkm import files

    def hang(place):
        (place / "inside" if isinstance(place, pathlib.Path) else pathlib.Path("/dev/null")).write_bytes(b"half")
        print("halfway", flush=True)
        time.sleep(600)

    getattr(files, sys.argv[1])(sys.argv[2], hang)
    """
)


def writing(kind: str, path) -> subprocess.Popen:
    """Return a process that is in the middle of writing the target."""
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-c", HALFWAY, WRITERS[kind][0].__name__, str(path)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "halfway\n"
    return process


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("kind", WRITERS)
def test_the_next_write_removes_what_a_killed_one_left(kind, tmp_path):
    target = tmp_path / "a[1]*.name"
    write, content = WRITERS[kind]
    kill(writing(kind, target))
    assert len(list(tmp_path.iterdir())) == 1
    write(target, content(target))
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_living_process_writes_stays(kind, tmp_path):
    target = tmp_path / "target"
    write, content = WRITERS[kind]
    process = writing(kind, target)
    try:
        [temporary] = tmp_path.iterdir()
        write(target, content(target))
        assert temporary.exists()
    finally:
        kill(process)


def test_what_belongs_to_another_target_stays(tmp_path):
    kill(writing("file", tmp_path / "target.0-of-2.a"))
    strangers = [tmp_path / ".target.tmp", tmp_path / ".target.old.tmp", tmp_path / f".target.{'0' * 17}.tmp"]
    for stranger in strangers:
        stranger.touch()
    before = set(tmp_path.iterdir())
    write_whole(tmp_path / "target", lambda file: file.write(b"content"))
    assert set(tmp_path.iterdir()) == before | {tmp_path / "target"}


def test_a_file_system_without_locks_stops_no_write(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no locks here")

    monkeypatch.setattr("drkm.files._whole.fcntl.flock", refuse)
    left = tmp_path / f".target.{'0' * 16}.tmp"
    left.touch()
    write_whole(tmp_path / "target", lambda file: file.write(b"content"))
    assert set(tmp_path.iterdir()) == {left, tmp_path / "target"}
