"""How many seeds the runs of an experiment have, where it is not the number of the scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Seeds:
    """A number of seeds, each with its own training draw, and another one for some families of models."""

    number: int
    of: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Seeds:
        """Return what a text such as "10" or "10,paper=5,beta-vae=5" says."""
        first, *others = [part.strip() for part in text.split(",")]
        pairs = [other.partition("=") for other in others]
        return cls(_number(first, text), {name: _number(count, text) for name, _, count in pairs})

    def __str__(self) -> str:
        return ",".join([f"{self.number}", *(f"{name}={count}" for name, count in self.of.items())])


def _number(part: str, text: str) -> int:
    if not part.isdecimal() or int(part) < 1:
        raise ValueError(f"seeds: expected a number such as 10, or 10,beta-vae=5 for families of models, got {text!r}")
    return int(part)
