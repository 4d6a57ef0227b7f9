"""Options besides the scale: other numbers of seeds, and variants, which change the values of parameters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from drkm.experiments.section import Section

if TYPE_CHECKING:
    from drkm.experiments.experiment import Experiment

#: upper limits on the entries of a list and on any number
MOST_ENTRIES, MOST = 12, 1e12


@dataclass(frozen=True)
class Seeds:
    """The number of seeds, each with its own training draw; some families of models may have another number."""

    number: int
    of: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Seeds:
        """Parse a text such as "10" or "10,paper=5,beta-vae=5"."""
        first, *others = [part.strip() for part in text.split(",")]
        pairs = [other.partition("=") for other in others]
        return cls(_seeds(first, text), {name: _seeds(count, text) for name, _, count in pairs})

    def __str__(self) -> str:
        return ",".join([f"{self.number}", *(f"{name}={count}" for name, count in self.of.items())])


def _seeds(part: str, text: str) -> int:
    if not part.isdecimal() or int(part) < 1:
        raise ValueError(f"seeds: expected a number such as 10, or 10,beta-vae=5 for families of models, got {text!r}")
    return int(part)


@dataclass(frozen=True)
class Kind:
    """The values that a parameter may have: `read` parses a text or returns None, `allowed` describes them."""

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


@dataclass(frozen=True)
class Variant:
    """Parameters by name, with the texts of their values."""

    texts: Mapping[str, str]

    @classmethod
    def read(cls, settings: Iterable[str]) -> Variant:
        """Parse settings such as "gamma=2"."""
        texts: dict[str, str] = {}
        for setting in settings:
            name, equals, value = (part.strip() for part in setting.partition("="))
            if not (name and equals and value):
                raise ValueError(f"set: expected a name and a value as in gamma=2, got {setting!r}")
            if name in texts:
                raise ValueError(f"set: {name!r} is set twice, to {texts[name]} and to {value}")
            texts[name] = value
        return cls(texts)

    def __str__(self) -> str:
        """Return the command-line options of this variant."""
        return " ".join(f"--set {name}={text}" for name, text in self.texts.items())

    def of(self, experiments: Mapping[str, Experiment]) -> dict[str, Experiment]:
        """Return the variants of those experiments that have any of the parameters; an unknown parameter is refused."""
        known = {name: kind for found in experiments.values() for name, kind in found.adjustable.items()}
        for name, text in self.texts.items():
            if name not in known:
                allowed = f"allowed are {', '.join(sorted(known))}" if known else "these experiments have none"
                raise ValueError(f"set: unknown name {name!r}, {allowed}")
            if known[name].read(text) is None:
                raise ValueError(f"set: {name} takes {known[name].allowed}, got {text!r}")
        changes = {name: self._changes(found) for name, found in experiments.items()}
        for name, text in self.texts.items():
            if not any(name in own for own in changes.values()):
                raise ValueError(f"set: {name} has an entry per layer, and no run has as many layers as {text!r}")
        return {name: replace(found, changes=changes[name]) for name, found in experiments.items() if changes[name]}

    def _changes(self, experiment: Experiment) -> dict[str, Any]:
        kinds = experiment.adjustable
        values = {name: kinds[name].read(text) for name, text in self.texts.items() if name in kinds}
        return {name: value for name, value in values.items() if experiment.accepts(name, value)}


def written(changes: Mapping[str, Any]) -> str:
    """Return changed parameters as text: "gamma=2, layers=20,10"."""
    return ", ".join(f"{name}={_text(value)}" for name, value in sorted(changes.items()))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    # All digits, so that different variants have different texts; but 2.0 is written as 2.
    return value if isinstance(value, str) else json.dumps(value).removesuffix(".0")


def marked(section: Section, changes: Mapping[str, Any]) -> Section:
    """Mark a section as that of a variant, so that nobody takes its verdicts for verdicts on the paper."""
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
