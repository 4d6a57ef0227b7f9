"""What a run can compute: tasks by name, in a table that whoever has runs to compute gives to a store."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drkm._version import __version__
from drkm.runs.configuration import Configuration, key_of
from drkm.validation import parts
from drkm.validation.parts import Part

Parameters = Mapping[str, Any]
#: what results are of which a task says nothing
ANYTHING = parts.group({}, others=True)


def generated(parameters: Parameters) -> str:
    """Return the checksum of data that the task itself generates: there is none."""
    return ""


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
    absent : type of exception, or a tuple of them
        What `data` raises where the data are not on this machine.
    result : Part
        What results must be: one that is not is refused when it is read.
    """

    function: str
    revision: int = 1
    data: Callable[[Parameters], str] = generated
    absent: type[Exception] | tuple[type[Exception], ...] = ()
    result: Part = ANYTHING

    def resolve(self) -> Callable[[Parameters, int], dict[str, Any]]:
        """Return the function."""
        return imported(self.function)

    def check(self, result: Mapping[str, Any], parameters: Parameters) -> None:
        """Raise an error unless a result is one of a run with these parameters."""
        self.result("result", result)
        # In rows it would stand in place of what the run was asked for; a flag asks for the part of its name.
        for name in sorted(set(result) & set(parameters)):
            if parameters[name] is not True:
                raise ValueError(f"result: {name}: expected no such part, because it is a parameter of the run")


@dataclass(frozen=True)
class KeyedRun:
    """A configuration with all that its key is made of."""

    key: str
    configuration: Configuration
    data: str
    revision: int
    version: str = __version__


@dataclass(frozen=True)
class TaskTable:
    """Tasks by name.

    Attributes
    ----------
    reference : str
        "module:name" of the table itself, by which other processes find it again.
    tasks : mapping of str to Task
    """

    reference: str
    tasks: Mapping[str, Task] = field(default_factory=dict)

    def task_of(self, configuration: Configuration) -> Task:
        """Return the task of a configuration."""
        if configuration.task not in self.tasks:
            allowed = ", ".join(self.tasks) or "none, because no table of tasks was given"
            raise ValueError(f"task: unknown name {configuration.task!r}, allowed are {allowed}")
        return self.tasks[configuration.task]

    def identify(self, configuration: Configuration) -> KeyedRun:
        """Return a run with its key; where its data are absent, what the task's `data` raises says how to get them."""
        task = self.task_of(configuration)
        data = task.data(configuration.parameters)
        return KeyedRun(key_of(configuration, data=data, revision=task.revision), configuration, data, task.revision)

    def perform(self, configuration: Configuration) -> dict[str, Any]:
        """Compute a run here and now, and return its result as the task made it."""
        # Through JSON, so that a task sees the same in this process as in a worker: lists, never tuples.
        run = Configuration.from_json(configuration.canonical())
        return self.task_of(run).resolve()(run.parameters, run.seed)


def table_at(reference: str) -> TaskTable:
    """Return the table that a reference names, in whichever process asks."""
    found = imported(reference)
    if not isinstance(found, TaskTable):
        raise TypeError(f"reference: expected 'module:name' of a TaskTable, got {reference!r}")
    return found


def imported(reference: str) -> Any:
    """Return what "module:name" names."""
    module, name = reference.split(":")
    return getattr(importlib.import_module(module), name)
