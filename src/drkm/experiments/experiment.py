"""Experiments: their runs, the tasks that compute them, and the sections made from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drkm.experiments.section import Claim, Figure, ResultTable, Section
from drkm.experiments.settings import COUNT, COUNTS, NUMBERS, Kind, Seeds, marked
from drkm.runs.configuration import Configuration, Results, check_scale
from drkm.runs.tasks import Task
from drkm.validation import parts

Row = dict[str, Any]

#: bounds on measured numbers in results: beyond them a file is damaged, and quotients and squares would overflow
MEASURED, MEASURED_ERROR = parts.number(-1e30, 1e30), parts.number(1e-30, 1e30)


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A chapter of the report, and the runs that it is made of.

    What the chapter shows is made from rows, the parameters, seed and result of each finished run, and from sizes, what
    a scale means for this experiment.
    """

    #: its name on the command line, and the title of its chapter
    name: str
    title: str
    #: its place in the report; ties are ordered by name
    place: int = 100
    #: tasks of its runs, by the name that the runs use
    tasks: Mapping[str, Task]
    #: sizes → the question and how it is measured
    text: Callable[[Any], str]
    #: (rows, sizes) → tables and figures; not called without rows
    tables: Callable[[list[Row], Any], Iterable[ResultTable]]
    figures: Callable[[list[Row], Any], Iterable[Figure]] = lambda rows, sizes: ()
    #: (rows, sizes) → claims
    claims: Callable[[list[Row], Any], Iterable[Claim]] = lambda rows, sizes: ()
    #: settings to show: name → an attribute of the sizes, a function of the rows, or a value that is not a string
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: parameters changed by a variant
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def adjustable(self) -> Mapping[str, Kind]:
        """Parameters of its runs that a variant can set."""
        return {}

    def accepts(self, name: str, value: Any) -> bool:
        """Whether some of its runs can take this value of an adjustable parameter."""
        return True

    @property
    def families(self) -> frozenset[str]:
        """Families of models by which its runs can be chosen."""
        return frozenset()

    @abstractmethod
    def sizes(self, scale: str, seeds: Seeds | None = None) -> Any:
        """Return its sizes at a scale; `seeds` replaces the seeds of the scale."""

    @abstractmethod
    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its distinct runs."""

    def rows(self, results: Results, scale: str, seeds: Seeds | None = None) -> list[Row]:
        """Return its finished runs as rows."""
        return list(results.rows(self.configurations(scale, seeds)))

    def section(self, results: Results, scale: str, seeds: Seeds | None = None) -> Section:
        """Return the section made from its finished runs."""
        sizes, rows = self.sizes(scale, seeds), self.rows(results, scale, seeds)
        shown = Section(
            self.name,
            self.title,
            self.text(sizes),
            tables=[table for table in self.tables(rows, sizes) if table.rows] if rows else [],
            figures=list(self.figures(rows, sizes)) if rows else [],
            claims=list(self.claims(rows, sizes)),
            settings={name: _setting(value, rows, sizes) for name, value in self.settings.items()},
        )
        return marked(shown, self.changes)


@dataclass(frozen=True, kw_only=True)
class SimpleExperiment(Experiment):
    """An experiment with its own sizes. The seeds of its runs are fixed: a requested number of seeds has no effect."""

    #: scale → sizes
    scales: Mapping[str, Any]
    #: fields of the sizes that a variant can set
    settable: Sequence[str] = ()
    #: sizes → list of Configuration
    runs: Callable[[Any], list[Configuration]]

    @property
    def adjustable(self) -> Mapping[str, Kind]:
        """Parameters of its runs that a variant can set."""
        # A field has the same kind at every scale.
        sizes = next(iter(self.scales.values()))
        return {name: _kind(getattr(sizes, name)) for name in self.settable}

    def sizes(self, scale: str, seeds: Seeds | None = None) -> Any:
        """Return its sizes at a scale."""
        sizes = self.scales[check_scale(scale)]
        changes = {name: tuple(value) if isinstance(value, list) else value for name, value in self.changes.items()}
        return replace(sizes, **changes) if changes else sizes

    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its distinct runs."""
        return self.runs(self.sizes(scale))


def _setting(value: Any, rows: list[Row], sizes: Any) -> Any:
    if isinstance(value, str):
        return getattr(sizes, value)
    return value(rows) if callable(value) else value


def _kind(value: Any) -> Kind:
    if not isinstance(value, tuple):
        return COUNT
    return COUNTS if isinstance(value[0], int) else NUMBERS
