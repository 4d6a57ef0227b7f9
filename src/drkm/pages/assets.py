"""Files of the package that go into pages."""

from __future__ import annotations

from importlib import resources


def asset(package: str, name: str) -> str:
    """Return the text of a file that lies beside the modules of a package."""
    return resources.files(package).joinpath(name).read_text("utf-8")


def theme() -> str:
    """Return the colours and letters of all pages, light and dark."""
    return asset("drkm.pages", "theme.css")
