"""The tables and figures of the paper, one module each.

An experiment is a module with `TITLE`, `configurations(scale)`, which returns its runs, and `section(results, scale)`,
which returns what they show; or, older, with one function `run(scale, out, ...)`. `drkm.experiments.reproduce` runs them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

#: name of an experiment → its module
NAMES: dict[str, str] = {
    "table1": "drkm.experiments.table1",
    "figure1": "drkm.experiments.figure1",
    "figure2": "drkm.experiments.figure2",
    "figure3": "drkm.experiments.figure3",
    "digits": "drkm.experiments.digits",
}
SCALES = ("quick", "paper")

Run = Callable[..., list[Path]]


def module_of(name: str) -> ModuleType:
    """Return the module of an experiment."""
    if name not in NAMES:
        raise ValueError(f"experiment: unknown name {name!r}, allowed are {', '.join(NAMES)} and all")
    return importlib.import_module(NAMES[name])


def by_name(name: str) -> Run:
    """Return the function that runs an experiment: run(scale, out, *, seed, n_jobs, verbose) -> files written."""
    return module_of(name).run


def check_scale(scale: Any) -> str:
    """Return the scale, or raise one sentence that says what is allowed."""
    if scale not in SCALES:
        raise ValueError(f"scale: unknown name {scale!r}, allowed are {', '.join(SCALES)}")
    return scale
