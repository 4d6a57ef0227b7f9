"""All experiments: every module of the packages below that has an `EXPERIMENT`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from drkm.experiments import denoising, disentanglement
from drkm.experiments.experiment import Experiment
from drkm.runs.tasks import Task, TaskTable


def _found() -> Iterator[Experiment]:
    for package in (denoising, disentanglement):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.rpartition(".")[2].startswith("_"):
                yield importlib.import_module(module.name).EXPERIMENT


def _tasks(experiments: dict[str, Experiment]) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for experiment in experiments.values():
        for name, task in experiment.tasks.items():
            if tasks.setdefault(name, task) != task:
                raise ValueError(f"task: two experiments mean different tasks by {name!r}")
    return tasks


#: name → experiment, in the order of the report
EXPERIMENTS = {found.name: found for found in sorted(_found(), key=lambda one: (one.place, one.name))}
TASKS = TaskTable(f"{__name__}:TASKS", _tasks(EXPERIMENTS))


def families() -> list[str]:
    """Return the families of models that the experiments compare."""
    return sorted({family for found in EXPERIMENTS.values() for family in found.families})


def choices() -> list[str]:
    """Return the names by which runs can be chosen: tasks, and families of models."""
    return [*TASKS.tasks, *families()]
