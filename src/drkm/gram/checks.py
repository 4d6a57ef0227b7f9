"""Checks of the numbers that strategies are given."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def check_count(name: str, value: Any, least: int) -> None:
    """Raise one sentence unless the value is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: expected an integer of at least {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, got {value}")
