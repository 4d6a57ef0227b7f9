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
    """A chapter of the report, and the runs that it is made of."""

    #: its name on the command line, and the title of its chapter
    name: str
    title: str
    #: its place in the report; ties are ordered by name
    place: int = 100
    #: tasks of its runs, by the name that the runs use
    tasks: Mapping[str, Task]
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
    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its distinct runs; `seeds` replaces the seeds of the scale."""

    @abstractmethod
    def section(self, results: Results, scale: str, seeds: Seeds | None = None) -> Section:
        """Return the section made from its finished runs."""


@dataclass(frozen=True, kw_only=True)
class SimpleExperiment(Experiment):
    """An experiment whose parts are made from the rows of its finished runs: parameters, seed and result of each.

    The seeds of its runs are fixed: a requested number of seeds has no effect.
    """

    #: the question and how it is measured
    text: str
    #: scale → sizes, which the functions below receive
    sizes: Mapping[str, Any]
    #: fields of the sizes that a variant can set
    settable: Sequence[str] = ()
    #: sizes → list of Configuration
    runs: Callable[[Any], list[Configuration]]
    #: rows → tables and figures; not called without rows
    tables: Callable[[list[Row]], Sequence[ResultTable]]
    figures: Callable[[list[Row]], Sequence[Figure]] = lambda rows: ()
    #: (rows, sizes) → claims
    claims: Callable[[list[Row], Any], Iterable[Claim]] = lambda rows, sizes: ()
    #: (rows, sizes) → settings to show
    settings: Callable[[list[Row], Any], Row] = field(default=lambda rows, sizes: {})

    @property
    def adjustable(self) -> Mapping[str, Kind]:
        """Parameters of its runs that a variant can set."""
        # A field has the same kind at every scale.
        sizes = next(iter(self.sizes.values()))
        return {name: _kind(getattr(sizes, name)) for name in self.settable}

    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its distinct runs."""
        return self.runs(self._sizes(scale))

    def _sizes(self, scale: str) -> Any:
        sizes = self.sizes[check_scale(scale)]
        changes = {name: tuple(value) if isinstance(value, list) else value for name, value in self.changes.items()}
        return replace(sizes, **changes) if changes else sizes

    def section(self, results: Results, scale: str, seeds: Seeds | None = None) -> Section:
        """Return the section made from its finished runs."""
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
