"""What an experiment is: its runs, the tasks that compute them, and what they show."""

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

#: parts of results: numbers so large or so small are none that was measured, and overflow in quotients and squares
MEASURED, MEASURED_ERROR = parts.number(-1e30, 1e30), parts.number(1e-30, 1e30)


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A chapter of the report, and the runs that it is made of."""

    #: by which it is asked for, and over its chapter
    name: str
    title: str
    #: its place in the report; those with the same follow by name
    place: int = 100
    #: tasks of its runs, by the name that the runs have for them
    tasks: Mapping[str, Task]
    #: parameters that a variant has set to other values
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def adjustable(self) -> Mapping[str, Kind]:
        """Parameters of its runs that a variant can set."""
        return {}

    def accepts(self, name: str, value: Any) -> bool:
        """Whether some of its runs can have this value of an adjustable parameter."""
        return True

    @property
    def families(self) -> frozenset[str]:
        """Families of models by which some of its runs can be chosen."""
        return frozenset()

    @abstractmethod
    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its runs, each once; with seeds, as many of them instead of those of the scale."""

    @abstractmethod
    def section(self, results: Results, scale: str, seeds: Seeds | None = None) -> Section:
        """Return what those of its runs that are finished show."""


@dataclass(frozen=True, kw_only=True)
class SimpleExperiment(Experiment):
    """An experiment whose parts are made from the rows of its finished runs: parameters, seed and result of each.

    Its runs name their seeds, which are the same at any number of them.
    """

    #: what is asked and how it is measured
    text: str
    #: what the functions below are given for each scale
    sizes: Mapping[str, Any]
    #: fields of the sizes that a variant can set
    settable: Sequence[str] = ()
    #: sizes → list of Configuration
    runs: Callable[[Any], list[Configuration]]
    #: rows → what is shown where there are rows
    tables: Callable[[list[Row]], Sequence[ResultTable]]
    figures: Callable[[list[Row]], Sequence[Figure]] = lambda rows: ()
    #: (rows, sizes) → claims
    claims: Callable[[list[Row], Any], Iterable[Claim]] = lambda rows, sizes: ()
    #: (rows, sizes) → what is shown as settings
    settings: Callable[[list[Row], Any], Row] = field(default=lambda rows, sizes: {})

    @property
    def adjustable(self) -> Mapping[str, Kind]:
        """Parameters of its runs that a variant can set."""
        # A field is of the same kind at every scale.
        sizes = next(iter(self.sizes.values()))
        return {name: _kind(getattr(sizes, name)) for name in self.settable}

    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its runs, each once."""
        return self.runs(self._sizes(scale))

    def _sizes(self, scale: str) -> Any:
        sizes = self.sizes[check_scale(scale)]
        changes = {name: tuple(value) if isinstance(value, list) else value for name, value in self.changes.items()}
        return replace(sizes, **changes) if changes else sizes

    def section(self, results: Results, scale: str, seeds: Seeds | None = None) -> Section:
        """Return what those of its runs that are finished show."""
        sizes = self._sizes(scale)
        rows = list(results.rows(self.runs(sizes)))
        shown = Section(
            self.name,
            self.title,
            self.text,
            tables=[table for table in self.tables(rows) if table.rows] if rows else [],
            figures=self.figures(rows) if rows else [],
            claims=list(self.claims(rows, sizes)),
            settings=self.settings(rows, sizes),
        )
        return marked(shown, self.changes)


def _kind(value: Any) -> Kind:
    if not isinstance(value, tuple):
        return COUNT
    return COUNTS if isinstance(value[0], int) else NUMBERS
