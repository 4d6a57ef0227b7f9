"""The results of an experiment, from which the report is made: tables, figures, and claims with their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(Enum):
    """The outcome of a claim."""

    HELD = "held"
    FAILED = "did not hold"
    UNDECIDED = "cannot tell"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or of ours, with what was measured."""

    #: in our words
    text: str
    #: the paper's number or wording; "" for a question of our own
    published: str
    #: our number, with what it was measured on
    measured: str
    verdict: Verdict
    #: the reasons for the verdict, and its limits
    why: str


@dataclass(frozen=True)
class ResultTable:
    """Rows with the same keys; numbers are not formatted."""

    name: str
    caption: str
    rows: Sequence[Mapping[str, Any]]
    #: shown at once in the report, where other tables are folded
    in_front: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure that is drawn on demand: `draw()` returns a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """One experiment: a chapter of the report, a folder of files."""

    name: str
    title: str
    #: the question and how it was measured, in a paragraph or two of plain text
    text: str
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()
    #: settings that all runs share, shown as they are
    settings: Mapping[str, Any] = field(default_factory=dict)
