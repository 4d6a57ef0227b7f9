"""HTML from nested calls. All text is escaped; only `Markup` goes into a page unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


#: elements without content
_VOID = frozenset({"img", "meta", "br", "hr"})


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element; children are nested, anything that is not `Markup` is escaped.

    Parameters
    ----------
    name : str
    children : objects
        Text, numbers, markup, or iterables of them; None is nothing.
    attributes : objects
        A trailing underscore is dropped and others become hyphens (`class_`, `aria_label`); None and False leave
        the attribute out, True gives it no value.
    """
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(start) if name in _VOID else Markup(f"{start}{together(*children)}</{name}>")


def together(*children: object) -> Markup:
    """Return children concatenated, without an enclosing element."""
    return Markup("".join(_rendered(child) for child in children))


def _rendered(child: object) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, Iterable) and not isinstance(child, str):
        return "".join(_rendered(inner) for inner in child)
    return escape(str(child))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
