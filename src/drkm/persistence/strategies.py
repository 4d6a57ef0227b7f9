"""Gram strategies in the header of a model file: by name, with their parameters."""

from __future__ import annotations

from typing import Any

from drkm import gram as grams
from drkm.gram import Strategy


def described(value: Any) -> Any:
    """Return the parameter `gram` as JSON; a custom strategy becomes "auto"."""
    if isinstance(value, str):
        return value
    return _entry(value) if value.name in grams.NAMES else "auto"


def read(entry: Any) -> Any:
    """Rebuild the parameter `gram` from the result of `described`."""
    return _strategy(entry) if isinstance(entry, dict) else entry


def _entry(strategy: Strategy) -> dict[str, Any]:
    # The file holds all samples, so the reader need not share them.
    own = strategy.alone
    settings = {name: _entry(value) if isinstance(value, Strategy) else value for name, value in vars(own).items()}
    return {"name": own.name, "settings": settings}


def _strategy(entry: dict[str, Any]) -> Strategy:
    kind = grams.NAMES.written(entry["name"])
    settings = {
        name: _strategy(value) if isinstance(value, dict) else value for name, value in entry["settings"].items()
    }
    return kind(**settings)
