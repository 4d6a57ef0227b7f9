"""What results look like: a task that says it has results of another kind refused when they are read.

A shape is one of the words below (`NUMBER`, `WORDS`, …), a `dict` of shapes (an object with at least these fields), a
`Several` of a shape (a list), or a `Named` (a list of objects, one for each of some names).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: what stands in place of a field that is not there
MISSING = type("Missing", (), {"__repr__": lambda self: "nothing"})()
#: numbers beyond this are none that was measured, and overflow in the squares and quotients of tables and figures
LARGEST = 1e30


@dataclass(frozen=True)
class Value:
    """A single value, in words and as a rule."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Several:
    """A list of things of one shape: at least one, or as many as `length` says."""

    of: Shape
    length: int | None = None


@dataclass(frozen=True)
class Named:
    """A list of objects, one for each of the names, which stand in their field `key`."""

    key: str
    names: Sequence[str]
    fields: Mapping[str, Shape]


@dataclass(frozen=True)
class Columns:
    """An object with lists of one shape and of one length, and other fields."""

    names: Sequence[str]
    of: Shape
    others: Mapping[str, Shape]


Shape = Value | Several | Named | Columns | Mapping[str, Any]


def _is_number(value: Any) -> bool:
    # Comparisons take integers of any size, conversions do not.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


NUMBER = Value(f"a number of size {LARGEST:g} at most", _is_number)
POSITIVE = Value(
    f"a number from {1 / LARGEST:g} to {LARGEST:g}", lambda value: _is_number(value) and value >= 1 / LARGEST
)
WORDS = Value("a text", lambda value: isinstance(value, str))
COUNT = Value("a whole number", lambda value: _is_number(value) and isinstance(value, int) and value >= 0)


def or_null(kind: Value) -> Value:
    """Return the shape of what may also be null."""
    return Value(f"{kind.words} or null", lambda value: value is None or kind.holds(value))


def optional(kind: Value) -> Value:
    """Return the shape of a field that may also be missing."""
    return Value(kind.words, lambda value: value is MISSING or kind.holds(value))


def misfit(value: Any, shape: Shape, place: str = "") -> str | None:
    """Return what was expected where, None if the value has the shape."""
    match shape:
        case Value():
            return None if shape.holds(value) else _expected(shape.words, place, value)
        case Several():
            if not isinstance(value, list) or not value or len(value) != (shape.length or len(value)):
                return _expected(f"a list of {shape.length or 'at least one'}", place, value)
            return _first(misfit(one, shape.of, f"{place}[{index}]") for index, one in enumerate(value))
        case Named():
            return _misfit_of_named(value, shape, place)
        case Columns():
            return _misfit_of_columns(value, shape, place)
    if not isinstance(value, dict):
        return _expected("an object", place, value)
    return _first(misfit(value.get(name, MISSING), of, f"{place}.{name}" if place else name) for name, of in shape.items())


def fields_of(shape: Shape) -> Sequence[str]:
    """Return the names of the fields that an object of this shape has."""
    if isinstance(shape, Columns):
        return [*shape.names, *shape.others]
    return list(shape) if isinstance(shape, Mapping) else []


def _misfit_of_named(value: Any, shape: Named, place: str) -> str | None:
    wrong = misfit(value, Several({shape.key: WORDS, **shape.fields}), place)
    if wrong is None and sorted(one[shape.key] for one in value) != sorted(shape.names):
        return _expected(f"one entry for each of {', '.join(shape.names)}", place, [one[shape.key] for one in value])
    return wrong


def _misfit_of_columns(value: Any, shape: Columns, place: str) -> str | None:
    wrong = misfit(value, {**dict.fromkeys(shape.names, Several(shape.of)), **shape.others}, place)
    if wrong is None and len({len(value[name]) for name in shape.names}) > 1:
        return _expected(f"lists of one length as {', '.join(shape.names)}", place, value)
    return wrong


def _first(misfits: Any) -> str | None:
    return next((wrong for wrong in misfits if wrong is not None), None)


def _expected(words: str, place: str, value: Any) -> str:
    return f"expected {words}{f' as {place}' if place else ''}, got {value!r:.60}"
