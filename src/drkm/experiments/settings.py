"""What a variant of an experiment may set its parameters to, and how what it shows is said to be a variant's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from drkm.experiments.section import Section

#: entries of a list, and the largest number of anything
MOST_ENTRIES, MOST = 12, 1e12


@dataclass(frozen=True)
class Kind:
    """What a parameter may be set to: how a text is read, None where it is not allowed, and what is."""

    read: Callable[[str], Any]
    allowed: str


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value <= MOST else None


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"0*[1-9]\d{0,8}", text) else None


def _several(read: Callable[[str], Any]) -> Callable[[str], list[Any] | None]:
    def entries(text: str) -> list[Any] | None:
        found = [read(part.strip()) for part in text.split(",")]
        return found if None not in found and len(found) <= MOST_ENTRIES else None

    return entries


NUMBER = Kind(_number, "a positive number")
COUNT = Kind(_count, "a positive integer")
NUMBERS = Kind(_several(_number), "positive numbers with commas between them")
COUNTS = Kind(_several(_count), "positive integers with commas between them")


def written(changes: Mapping[str, Any]) -> str:
    """Return changed parameters as they are said: "gamma=2, layers=20,10"."""
    return ", ".join(f"{name}={_text(value)}" for name, value in sorted(changes.items()))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    # All digits, because two variants must not be one; but 2.0 is said as 2.
    return value if isinstance(value, str) else json.dumps(value).removesuffix(".0")


def marked(section: Section, changes: Mapping[str, Any]) -> Section:
    """Return what a variant shows, said to be that: nobody should take its verdicts for those on the paper."""
    if not changes:
        return section
    name = f"variant {written(changes)}"
    note = (
        f"This is the {name}. Words and claims are those of the paper's settings: where they name another value, that "
        "of the variant was run, and verdicts are about the variant alone."
    )
    return replace(
        section,
        title=f"{section.title} ({name})",
        text=f"{note}\n\n{section.text}",
        claims=[
            replace(claim, why=f"Judged of the {name}, not of the paper's settings. {claim.why}")
            for claim in section.claims
        ],
        settings={**section.settings, "set": written(changes)},
    )
