"""How table cells and indices of letters are written, in text, HTML and LaTeX alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def readable(value: Any) -> str:
    """Return a value for display: four digits, and a dash if it is missing."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(readable(entry) for entry in value)
    return str(value)


def all_numbers(values: list[Any]) -> bool:
    """Whether all values of a column are numbers or missing."""
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def with_indices(text: str, plain: Callable[[str], T], indexed: Callable[[str, str], T]) -> Iterator[T]:
    """Yield the parts of a text: `plain` of ordinary text, `indexed` of letters with an index such as σ_n or s_1."""
    # With two capturing groups, the split yields text, letter, index, text, and so on.
    first, *rest = re.split(r"\b([^\W\d_])_([A-Za-z0-9])(?![A-Za-z0-9_])", text)
    yield plain(first)
    for letter, index, after in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        yield indexed(letter, index)
        yield plain(after)
