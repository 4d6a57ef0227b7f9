"""What the report shows, apart from how: a chapter an experiment, with the runs it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from drkm.experiments.section import Section, Verdict


class FailedRun(NamedTuple):
    """A run that raised something: what it was, and what it said."""

    run: str
    reason: str


@dataclass(frozen=True)
class Chapter:
    """An experiment and how far its runs are."""

    section: Section
    #: runs that the experiment consists of, and those that there are
    expected: int
    finished: int
    failed: Sequence[FailedRun] = ()
    #: computing time of the finished runs
    seconds: float = 0.0
    seeds: Sequence[int] = ()
    #: what makes the runs that are missing
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
    #: of the command that makes the runs: scale, and seeds and settings where they are not those of the scale
    options: str = ""
    #: what was set, "" for the paper's settings
    variant: str = ""


def verdicts(chapters: Iterable[Chapter]) -> Counter[Verdict]:
    """Return how many claims have which verdict."""
    return Counter(claim.verdict for chapter in chapters for claim in chapter.section.claims)
