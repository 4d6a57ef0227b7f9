"""The end of a demo: the page to look at its model with."""

from __future__ import annotations

from pathlib import Path

from drkm.explorer import Subject, write_page


def write_explorer(subject: Subject, stem: Path) -> Path:
    """Write the explorer page of a model that was saved as STEM.safetensors, and say how to open it."""
    path = write_page(subject, stem.with_suffix(".html"))
    print(f"\nto see what it learned, open {path.resolve().as_uri()} in a browser,")
    print(f"or run drkm explore {stem.with_suffix('.safetensors')} --live --open to decode any codes")
    return path
