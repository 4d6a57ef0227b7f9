"""Requirements for the parts of a file, which are checked when it is read so that nothing fails later.

A part is a function of a name and a value that raises an error unless the value meets the requirements.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from drkm.wording import dtype_name

if TYPE_CHECKING:
    import torch

Part = Callable[[str, Any], None]
#: marks a missing value
MISSING = object()


def check(values: Any, parts: Mapping[str, Part], *, others: bool = False) -> None:
    """Raise an error unless the values meet the requirements of these parts, without others unless allowed."""
    if not isinstance(values, Mapping):
        raise TypeError(f"expected {', '.join(parts)}, got {_short(values)}")
    for name, part in parts.items():
        part(name, values.get(name, MISSING))
    strange = sorted(set(values) - set(parts))
    if strange and not others:
        raise ValueError(f"{_short(strange[0])}: expected no such part")


def tensor(*shape: int, dtype: torch.dtype | np.dtype) -> Part:
    """Return the requirement of a tensor or array of finite numbers in this shape and precision."""

    def part(name: str, value: Any) -> None:
        wanted = f"{dtype_name(dtype)} numbers of shape {shape}"
        if not hasattr(value, "dtype"):
            raise TypeError(f"{name}: expected {wanted}, got {_short(value)}")
        if tuple(value.shape) != shape or value.dtype != dtype:
            kind = dtype_name(value.dtype)
            raise ValueError(f"{name}: expected {wanted}, got {kind} of shape {tuple(value.shape)}")
        if not (np.isfinite(value) if isinstance(value, np.ndarray) else value.isfinite()).all():
            raise ValueError(f"{name}: expected finite numbers, got NaN or inf")

    return part


def number(least: float = -math.inf, most: float = math.inf) -> Part:
    """Return the requirement of one finite number."""

    def part(name: str, value: Any) -> None:
        # Compared, not converted: an integer may be too large for a float.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise TypeError(f"{name}: expected a finite number, got {_short(value)}")
        if value < least:
            raise ValueError(f"{name}: expected a number of at least {least:g}, got {_short(value)}")
        if value > most:
            raise ValueError(f"{name}: expected a number of at most {most:g}, got {_short(value)}")

    return part


def positive(name: str, value: Any) -> None:
    """Raise an error unless the value is a positive finite number."""
    number(math.ulp(0.0))(name, value)


def count(least: int = 0, most: int = 2**53) -> Part:
    """Return the requirement of one integer."""

    def part(name: str, value: Any) -> None:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{name}: expected an integer from {least} to {most}, got {_short(value)}")

    return part


def present(name: str, value: Any) -> None:
    """Raise an error unless there is a value, of any kind."""
    if value is MISSING:
        raise TypeError(f"{name}: expected a value, got nothing")


def text(name: str, value: Any) -> None:
    """Raise an error unless the value is text."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected text, got {_short(value)}")


def truth(name: str, value: Any) -> None:
    """Raise an error unless the value is true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected true or false, got {_short(value)}")


def nothing(name: str, value: Any) -> None:
    """Raise an error if there is a value."""
    if value is not None:
        raise ValueError(f"{name}: expected none, got {_short(value)}")


def choice(*allowed: str) -> Part:
    """Return the requirement of one of these texts."""

    def part(name: str, value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {_short(value)}")

    return part


def nullable(inner: Part) -> Part:
    """Return the same requirement, with None allowed."""

    def part(name: str, value: Any) -> None:
        if value is not None:
            inner(name, value)

    return part


def optional(inner: Part) -> Part:
    """Return the same requirement, for a part that may be missing."""

    def part(name: str, value: Any) -> None:
        if value is not MISSING:
            inner(name, value)

    return part


def several(inner: Part, most: float = math.inf, least: int = 0) -> Part:
    """Return the requirement of a list."""

    def part(name: str, value: Any) -> None:
        if not isinstance(value, list | tuple) or not least <= len(value) <= most:
            size = f"{least}" if least == most else f"{least} to {most:g}" if most < math.inf else f"at least {least}"
            raise TypeError(f"{name}: expected a list of {size}, got {_short(value)}")
        for entry in value:
            inner(name, entry)

    return part


def each(inner: list[Part]) -> Part:
    """Return the requirement of a list with these entries in order."""

    def part(name: str, value: Any) -> None:
        if not isinstance(value, list | tuple) or len(value) != len(inner):
            raise TypeError(f"{name}: expected a list of {len(inner)}, got {_short(value)}")
        for own, entry in zip(inner, value, strict=True):
            own(name, entry)

    return part


def group(parts: Mapping[str, Part], *, others: bool = False) -> Part:
    """Return the requirement of a mapping with these parts."""

    def part(name: str, value: Any) -> None:
        try:
            check(value, parts, others=others)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error

    return part


def entries(key: str, names: Sequence[str], parts: Mapping[str, Part]) -> Part:
    """Return the requirement of a list with one entry per name, which is the part `key` of the entry."""
    inner = several(group({key: text, **parts}, others=True))

    def part(name: str, value: Any) -> None:
        inner(name, value)
        if sorted(entry[key] for entry in value) != sorted(names):
            raise ValueError(f"{name}: expected one entry for each {key} of {', '.join(names)}")

    return part


def columns(names: Sequence[str], inner: Part) -> Part:
    """Return the requirement of lists of equal length under these names."""
    every = group(dict.fromkeys(names, several(inner, least=1)), others=True)

    def part(name: str, value: Any) -> None:
        every(name, value)
        if len({len(value[column]) for column in names}) > 1:
            raise ValueError(f"{name}: expected lists of one length as {', '.join(names)}")

    return part


def named(inner: Part) -> Part:
    """Return the requirement of a mapping with any names to such parts."""

    def part(name: str, value: Any) -> None:
        group(dict.fromkeys(value, inner) if isinstance(value, dict) else {})(name, value)

    return part


def numbered(inner: Part) -> Part:
    """Return the requirement of a mapping from numbers to such parts."""

    def part(name: str, value: Any) -> None:
        if not isinstance(value, dict) or not all(_is_number(key) for key in value):
            raise TypeError(f"{name}: expected entries by their numbers, got {_short(value)}")
        for key, entry in value.items():
            inner(f"{name} {key}", entry)

    return part


def _is_number(key: Any) -> bool:
    return isinstance(key, str) and len(key) < 10 and key.isdecimal() and key == str(int(key))


def _short(value: Any) -> str:
    """Return a short form of a value for an error message."""
    if value is MISSING:
        return "nothing"
    if hasattr(value, "shape"):
        return f"numbers of shape {tuple(value.shape)}"
    if isinstance(value, int) and abs(value) > 10**20:
        return "a huge integer"
    said = " ".join(repr(value).split()) if isinstance(value, int | float | str | None) else type(value).__name__
    return said if len(said) <= 60 else said[:57] + "..."
