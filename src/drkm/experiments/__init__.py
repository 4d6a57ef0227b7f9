"""The tables and figures of the paper, one module each, with a function `run(scale, out, ...)`.

`python -m drkm.experiments table1 --scale quick` runs one of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: name of an experiment → module that holds its `run`
NAMES: dict[str, str] = {
    "table1": "drkm.experiments.table1",
    "figure1": "drkm.experiments.figure1",
    "figure2": "drkm.experiments.figure2",
    "figure3": "drkm.experiments.figure3",
    "digits": "drkm.experiments.digits",
}
SCALES = ("quick", "paper")

Run = Callable[..., list[Path]]


def by_name(name: str) -> Run:
    """Return the function that runs an experiment: run(scale, out, *, seed, n_jobs, verbose) -> files written."""
    if name not in NAMES:
        raise ValueError(f"experiment: unknown name {name!r}, allowed are {', '.join(NAMES)}")
    return importlib.import_module(NAMES[name]).run


def check_scale(scale: Any) -> str:
    """Return the scale, or raise one sentence that says what is allowed."""
    if scale not in SCALES:
        raise ValueError(f"scale: unknown name {scale!r}, allowed are {', '.join(SCALES)}")
    return scale
