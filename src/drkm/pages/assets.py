"""Files of the package that are embedded in pages."""

from __future__ import annotations

from importlib import resources


def asset(package: str, name: str) -> str:
    """Return the text of a file in a package."""
    return resources.files(package).joinpath(name).read_text("utf-8")


def theme() -> str:
    """Return the style sheet of all pages, with light and dark colours."""
    return asset("drkm.pages", "theme.css")
