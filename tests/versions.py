"""Versions of libraries, for tests of what only later ones do."""

from __future__ import annotations

from importlib.metadata import version

from sklearn.utils.fixes import parse_version


def skip_before(package: str, least: str) -> dict[str, object]:
    """Return the arguments of `pytest.mark.skipif` for a test that needs at least this version of a package."""
    found = version(package)
    return {"condition": parse_version(found) < parse_version(least), "reason": f"{package} {found} does not do it"}
