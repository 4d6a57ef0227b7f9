"""The content of the report without its layout: one chapter per experiment, with the state of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from drkm.experiments.section import Section, Verdict


class FailedRun(NamedTuple):
    """A run that raised an exception, with its description and the message."""

    run: str
    reason: str


@dataclass(frozen=True)
class Chapter:
    """The section of an experiment and the progress of its runs."""

    section: Section
    #: numbers of runs that the experiment needs, and that are finished
    expected: int
    finished: int
    failed: Sequence[FailedRun] = ()
    #: computing time of the finished runs
    seconds: float = 0.0
    seeds: Sequence[int] = ()
    #: the command that computes the missing runs
    command: str = ""

    @property
    def missing(self) -> int:
        """Runs that neither finished nor failed."""
        return self.expected - self.finished - len(self.failed)


@dataclass(frozen=True)
class Report:
    """All chapters, and where and when their runs were made."""

    scale: str
    chapters: Sequence[Chapter]
    #: finished runs, each counted once: experiments share some
    runs: int
    #: machines and versions, each with its number of `runs`
    environments: Sequence[Mapping[str, Any]] = ()
    #: date and time of the report, and the version of drkm that wrote it
    made: str = ""
    version: str = ""
    #: options of the command that computes the runs: the scale, and seeds and settings that differ from it
    options: str = ""
    #: the changed settings, "" for those of the paper
    variant: str = ""


def verdicts(chapters: Iterable[Chapter]) -> Counter[Verdict]:
    """Return the number of claims with each verdict."""
    return Counter(claim.verdict for chapter in chapters for claim in chapter.section.claims)
