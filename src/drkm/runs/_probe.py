"""A run that does nothing of use: what tests and benchmarks of the runner run."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

_BLOCK = bytes(1 << 16)


def probe(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return a digest that takes `rounds` passes over a block to compute.

    `sleep` waits so many seconds first; `fail` raises; `die` kills the process that runs it.
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
