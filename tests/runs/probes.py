"""Dummy runs with their own task table; as a script, a sweep for tests to interrupt.

python probes.py STORE --runs 500
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.runs.store import Store
from drkm.runs.tasks import Task, TaskTable

_BLOCK = bytes(1 << 16)


def probe(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return a digest that takes `rounds` passes over a block to compute.

    `sleep` waits this many seconds first; `fail` raises; `die` kills the process that runs it.
    """
    time.sleep(parameters.get("sleep", 0.0))
    if parameters.get("fail"):
        raise ValueError("fail: the run was asked to fail")
    if parameters.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    digest = hashlib.sha256(f"{parameters.get('name', '')} {seed}".encode())
    for _ in range(parameters.get("rounds", 0)):
        digest.update(_BLOCK)
    return {"digest": digest.hexdigest()}


def checksum(parameters: Mapping[str, Any]) -> str:
    """Return the checksum of the file named in the parameters, "" if there is none."""
    return hashlib.sha256(Path(parameters["file"]).read_bytes()).hexdigest() if "file" in parameters else ""


#: worker processes import it under the name of this module, which for a script is __main__
PROBE = Task(f"{__name__}:probe", data=checksum, absent=FileNotFoundError)
TASKS = TaskTable(f"{__name__}:TASKS", {"probe": PROBE})


def probes(count, sleep):
    return [Configuration("probe", {"sleep": sleep, "rounds": 5}, seed) for seed in range(count)]


def ends(group):
    """Whether all processes of a group end within a few seconds; the last one is a helper of multiprocessing."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--sleep", type=float, default=0.0)
    options = parser.parse_args()
    with Store(options.store, TASKS) as store:
        sweep(probes(options.runs, options.sleep), store, jobs=2, retry_failed=True)


if __name__ == "__main__":
    main()
