"""Tests of GPU kernels without a GPU: Triton's interpreter runs them on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def passes(file: str, chosen: str) -> None:
    """Fail unless the tests of a file that are marked `gpu` and chosen by `-k` pass in the interpreter."""
    # Older interpreters do not take numpy 2.4.
    pytest.importorskip("triton", minversion="3.7")
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-k", chosen, "-p", "no:cacheprovider", file]
    # The variable must be set before Triton is imported, hence another process.
    run = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
