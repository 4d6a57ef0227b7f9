"""How the header of a file says which operators formed the Gram matrices: by name, with settings."""

from __future__ import annotations

from typing import Any

from drkm import gram as grams
from drkm.gram import Strategy


def described(value: Any) -> Any:
    """Return the parameter `gram` as JSON; "auto" stands for a strategy of one's own."""
    if isinstance(value, str):
        return value
    return _entry(value) if value.name in grams.NAMES else "auto"


def read(entry: Any) -> Any:
    """Return the parameter `gram` that `described` wrote."""
    return _strategy(entry) if isinstance(entry, dict) else entry


def _entry(strategy: Strategy) -> dict[str, Any]:
    # The file holds all samples: whoever reads it need not share them.
    own = strategy.alone
    settings = {name: _entry(value) if isinstance(value, Strategy) else value for name, value in vars(own).items()}
    return {"name": own.name, "settings": settings}


def _strategy(entry: dict[str, Any]) -> Strategy:
    kind = grams.NAMES.written(entry["name"])
    settings = {
        name: _strategy(value) if isinstance(value, dict) else value for name, value in entry["settings"].items()
    }
    return kind(**settings)
