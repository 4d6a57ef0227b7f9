"""What the report shows, apart from how: a chapter an experiment, with the runs it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drkm.experiments.section import Section, Verdict


@dataclass(frozen=True)
class FailedRun:
    """A run that raised something: what it was, and what it said."""

    run: str
    reason: str


@dataclass(frozen=True)
class Chapter:
    """An experiment and how far its runs are.

    Attributes
    ----------
    section : Section
    expected, finished : int
        Runs that the experiment consists of, and those that there are.
    failed : sequence of FailedRun
    seconds : float
        Computing time of the finished runs.
    seeds : sequence of int
    command : str
        What makes the runs that are missing.
    """

    section: Section
    expected: int
    finished: int
    failed: Sequence[FailedRun] = ()
    seconds: float = 0.0
    seeds: Sequence[int] = ()
    command: str = ""

    @property
    def missing(self) -> int:
        """Runs that neither finished nor failed."""
        return self.expected - self.finished - len(self.failed)


@dataclass(frozen=True)
class Report:
    """All chapters, and where and when their runs were made.

    Attributes
    ----------
    scale : str
    chapters : sequence of Chapter
    runs : int
        Finished runs, each counted once: experiments share some.
    environments : sequence of dict
        Machines and versions, each with its number of `runs`.
    made : str
        Date and time of the report.
    version : str
        Of drkm, which wrote it.
    options : str
        Of the command that makes the runs: scale, and seeds and settings where they are not those of the scale.
    variant : str
        What was set, "" for the paper's settings.
    """

    scale: str
    chapters: Sequence[Chapter]
    runs: int
    environments: Sequence[Mapping[str, Any]] = field(default_factory=list)
    made: str = ""
    version: str = ""
    options: str = ""
    variant: str = ""


def verdicts(chapters: Iterable[Chapter]) -> Counter[Verdict]:
    """Return how many claims have which verdict."""
    return Counter(claim.verdict for chapter in chapters for claim in chapter.section.claims)
