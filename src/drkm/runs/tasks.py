"""Tables of tasks, the functions that runs compute."""

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
#: default requirement for results
ANYTHING = parts.group({}, others=True)


def generated(parameters: Parameters) -> str:
    """Return the empty checksum of data that the task itself generates."""
    return ""


@dataclass(frozen=True)
class Task:
    """A function (parameters, seed) -> dict of numbers, strings and lists, and what its results depend on.

    Attributes
    ----------
    function : str
        "module:name", imported for the first run.
    revision : int
        Raise it whenever the function computes something else: earlier results are then no longer found.
    data : callable
        Returns the checksum of the data of a run from its parameters.
    absent : type of exception, or a tuple of them
        Exceptions of `data` if the data are not on this machine.
    result : Part
        Requirement for results, checked when they are read.
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
        """Raise an error unless a result is valid for these parameters."""
        self.result("result", result)
        # In rows such a field would replace the parameter; a flag requires the part of its name.
        for name in sorted(set(result) & set(parameters)):
            if parameters[name] is not True:
                raise ValueError(f"result: {name}: expected no such part, because it is a parameter of the run")


@dataclass(frozen=True)
class KeyedRun:
    """A configuration with everything that determines its key."""

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
        "module:name" of the table itself, by which other processes import it.
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
        """Return a run with its key; if its data are absent, the exception of `data` says how to get them."""
        task = self.task_of(configuration)
        data = task.data(configuration.parameters)
        return KeyedRun(key_of(configuration, data=data, revision=task.revision), configuration, data, task.revision)

    def perform(self, configuration: Configuration) -> dict[str, Any]:
        """Compute a run in this process and return the result of its task."""
        # Through JSON, so that a task gets the same values as in a worker: lists, never tuples.
        run = Configuration.from_json(configuration.canonical())
        return self.task_of(run).resolve()(run.parameters, run.seed)


def table_at(reference: str) -> TaskTable:
    """Import a task table by its reference."""
    found = imported(reference)
    if not isinstance(found, TaskTable):
        raise TypeError(f"reference: expected 'module:name' of a TaskTable, got {reference!r}")
    return found


def imported(reference: str) -> Any:
    """Import the object "module:name"."""
    module, name = reference.split(":")
    return getattr(importlib.import_module(module), name)
