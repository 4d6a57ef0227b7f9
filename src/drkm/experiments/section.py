"""What an experiment has to show: tables, figures, and claims with their verdicts. The report is made of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(Enum):
    """What became of a claim."""

    HELD = "held"
    FAILED = "did not hold"
    UNDECIDED = "cannot tell"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper (or of ours) beside what was measured."""

    #: in our words
    text: str
    #: the paper's number or wording; "" for a question of our own
    published: str
    #: our number, with what it was measured on
    measured: str
    verdict: Verdict
    #: how the verdict follows, and what limits it
    why: str


@dataclass(frozen=True)
class ResultTable:
    """Rows with the same keys; numbers as numbers."""

    name: str
    caption: str
    rows: Sequence[Mapping[str, Any]]
    #: seen at once in the report, where others are folded
    in_front: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure that is drawn when asked for: `draw()` returns a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """One experiment: a chapter of the report, a folder of files."""

    name: str
    title: str
    #: what was asked and how it was measured, in a paragraph or two of plain text
    text: str
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()
    #: settings that all runs share, shown as they are
    settings: Mapping[str, Any] = field(default_factory=dict)
