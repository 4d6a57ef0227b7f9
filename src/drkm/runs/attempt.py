"""One attempt at a run: its result as JSON or its traceback, its duration and environment."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from drkm._version import __version__
from drkm.files.json_values import plain
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import TaskTable

#: environment variables that limit numerical libraries to one thread if set before they start
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Attempt:
    """The outcome of an attempt at a run.

    Attributes
    ----------
    status : {"done", "failed", "lost"}
        "lost" means that the process died, which need not be due to the run.
    result : str
        JSON of the result, "" unless done.
    traceback : str
        Traceback of a failed run, else "".
    seconds : float
    environment : str
        JSON description of the machine and versions.
    """

    status: str
    result: str = ""
    traceback: str = ""
    seconds: float = 0.0
    environment: str = "{}"


def attempt(tasks: TaskTable, configuration: Configuration) -> Attempt:
    """Perform a run; exceptions become a traceback."""
    clock = time.perf_counter()
    try:
        text = as_json(tasks.perform(configuration))
    except Exception:
        seconds = time.perf_counter() - clock
        return Attempt("failed", traceback=traceback.format_exc(), seconds=seconds, environment=environment())
    return Attempt("done", text, seconds=time.perf_counter() - clock, environment=environment())


def as_json(result: Mapping[str, Any]) -> str:
    """Return a result as JSON; NaN and infinities become null."""
    if not isinstance(result, Mapping):
        raise TypeError(f"result: a task returns a dict, got {type(result).__name__}")
    return json.dumps(plain(result), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def environment() -> str:
    """Return a JSON description of machine, versions, threads and device of this process."""
    return _environment("torch" in sys.modules)


@cache
def _environment(with_torch: bool) -> str:
    found: dict[str, Any] = {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": _declared_threads(),
        "device": "cpu",
        "python": platform.python_version(),
        "drkm": __version__,
    }
    if with_torch:
        torch = sys.modules["torch"]
        found["threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            found["device"] = torch.cuda.get_device_name()
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return json.dumps(found, ensure_ascii=False)


def _declared_threads() -> int | None:
    """Return the number of threads that the environment declares: OpenMP takes a list, one number per nesting level."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) or None if first.isdecimal() else None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return platform.processor()
