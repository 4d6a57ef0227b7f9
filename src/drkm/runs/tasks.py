"""What a run can compute: a fixed table of tasks. A new one is a line here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from drkm._version import __version__
from drkm.runs.configuration import Configuration, key_of

Parameters = Mapping[str, Any]


def dataset_checksum(parameters: Parameters) -> str:
    """Return the checksum of the dataset that the parameters name, "" where they name none."""
    if "dataset" not in parameters:
        return ""
    from drkm.runs.data import checksum

    return checksum(parameters["dataset"])


@dataclass(frozen=True)
class Task:
    """A function (parameters, seed) -> dict of numbers, strings and lists, and what its results depend on.

    Attributes
    ----------
    function : str
        "module:name", imported when the first run asks for it.
    revision : int
        Raised by whoever changes what the function computes: results of earlier revisions are not found any more.
    data : callable
        Returns the checksum of the data of a run from its parameters.
    """

    function: str
    revision: int = 1
    data: Callable[[Parameters], str] = dataset_checksum

    def resolve(self) -> Callable[[Parameters, int], dict[str, Any]]:
        """Return the function."""
        module, name = self.function.split(":")
        return getattr(importlib.import_module(module), name)


TASKS: dict[str, Task] = {
    "probe": Task("drkm.runs._probe:probe"),
    "denoise-cell": Task("drkm.experiments.denoising._table1_cell:run_cell", revision=3),
    "denoise-panels": Task("drkm.experiments.denoising._panels:run_panels", revision=3),
    "digits": Task("drkm.experiments.denoising._digits_run:run_digits", revision=3),
    "disentangle": Task("drkm.experiments.disentanglement._tasks:disentangle"),
    "equal_time": Task("drkm.experiments.disentanglement._tasks:equal_time"),
    "stability": Task("drkm.experiments.disentanglement._tasks:stability"),
}


@dataclass(frozen=True)
class Run:
    """A configuration with all that its key is made of."""

    key: str
    configuration: Configuration
    data: str
    revision: int
    version: str = __version__


def task_of(configuration: Configuration) -> Task:
    """Return the task of a configuration."""
    if configuration.task not in TASKS:
        raise ValueError(f"task: unknown name {configuration.task!r}, allowed are {', '.join(TASKS)}")
    return TASKS[configuration.task]


def identify(configuration: Configuration) -> Run:
    """Return a run with its key; data that are absent give one sentence that says how to get them."""
    task = task_of(configuration)
    data = task.data(configuration.parameters)
    return Run(key_of(configuration, data=data, revision=task.revision), configuration, data, task.revision)


def perform(configuration: Configuration) -> dict[str, Any]:
    """Compute a run here and now, and return its result as the task made it."""
    # Through JSON, so that a task sees the same in this process as in a worker: lists, never tuples.
    run = Configuration.from_json(configuration.canonical())
    return task_of(run).resolve()(run.parameters, run.seed)
