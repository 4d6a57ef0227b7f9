"""Every benchmark in README and docs is started, from a separate folder.

Their tables take minutes to hours, so each is stopped after the first row of a table below its head, or after `SECONDS`
without an error.
Arguments that need a GPU or many samples are replaced by those of `SMALLER`, and benchmarks whose requirements are
missing (a GPU, the files of a dataset) are skipped.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable

import pytest
import torch

from documented import PAGES, ROOT, commands

pytestmark = pytest.mark.slow
#: documented arguments → those that are run
SMALLER = {
    "--device cuda": "--device cpu",
    "--points 1000000": "--points 200 --train 100",
    "--points 3000": "--points 300",
    "--jobs 16": "--jobs 1",
    "--n 100000": "--n 500 --here",
    "--n 10000": "--n 200",
    "--samples 2000 10000 20000 50000 100000": "--samples 200",
    "--samples 10000 100000": "--samples 200",
    "--samples 500 1000 2000 5000 10000": "--samples 200",
    "--operators fused": "--operators tiled",
    "20000 --dtype float32 --limit 3000": "200 --dtype float32 --limit 60",
}
#: benchmarks of the fused operator, which needs a GPU
ON_A_GPU = ("fused", "million")
#: enough for imports, for parsing arguments and, in most benchmarks, for the first row
SECONDS = 30


def lines() -> list[str]:
    found = {words.removeprefix(".") for page in PAGES for words in commands(page, "python -m benchmarks")}
    return sorted(words for words in found if not words.startswith(("[", "-")))


def smaller(line: str) -> list[str]:
    for documented, run in SMALLER.items():
        line = line.replace(documented, run)
    return shlex.split(line)


def end(running: subprocess.Popen[str]) -> None:
    """End a program and its child processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)


def has_row(lines: Iterable[str]) -> bool:
    """Read lines until the first row of a table below its head."""
    before = ""
    for line in lines:
        if before.startswith("|--") and line.startswith("|"):
            return True
        before = line
    return False


@pytest.mark.timeout(10 * SECONDS)
@pytest.mark.parametrize("line", lines())
def test_a_benchmark_begins(line, tmp_path):
    name, *words = smaller(line)
    if name in ON_A_GPU and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-u", "-m", f"benchmarks.{name}", *words]
    with open(tmp_path / "errors", "w+") as errors:
        how = {"cwd": tmp_path, "env": place, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
        running = subprocess.Popen(command, start_new_session=True, **how)
        # Reading ends with the first row, with the program, or when its time is over.
        late = threading.Timer(SECONDS, end, [running])
        late.start()
        try:
            # A program without a row has ended, by itself or by the timer.
            code = 0 if has_row(running.stdout) else running.wait()
        finally:
            late.cancel()
            end(running)
            running.wait()
            running.stdout.close()
        errors.seek(0)
        said = errors.read()
    if code and ("drkm datasets download" in said or "DRKM_DATA" in said):
        pytest.skip("needs the files of a dataset")
    assert code in (0, -signal.SIGKILL), said
