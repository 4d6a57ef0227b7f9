"""What an experiment is: its runs, the tasks that compute them, and what they show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drkm.experiments.section import Claim, Figure, ResultTable, Section
from drkm.experiments.seeds import Seeds
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
    #: sizes → list of Configuration
    runs: Callable[[Any], list[Configuration]]
    #: rows → what is shown where there are rows
    tables: Callable[[list[Row]], Sequence[ResultTable]]
    figures: Callable[[list[Row]], Sequence[Figure]] = lambda rows: ()
    #: (rows, sizes) → list of Claim
    claims: Callable[[list[Row], Any], Sequence[Claim]] = lambda rows, sizes: ()
    #: (rows, sizes) → what is shown as settings
    settings: Callable[[list[Row], Any], Row] = field(default=lambda rows, sizes: {})

    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its runs, each once."""
        return self.runs(self.sizes[check_scale(scale)])

    def section(self, results: Results, scale: str, seeds: Seeds | None = None) -> Section:
        """Return what those of its runs that are finished show."""
        sizes = self.sizes[check_scale(scale)]
        rows = list(results.rows(self.runs(sizes)))
        return Section(
            self.name,
            self.title,
            self.text,
            tables=[table for table in self.tables(rows) if table.rows] if rows else [],
            figures=self.figures(rows) if rows else [],
            claims=self.claims(rows, sizes),
            settings=self.settings(rows, sizes),
        )
