"""What the demos share: the model, and its explorer page."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from drkm.estimator import ConstrDRKM
from drkm.explorer import Subject, write_page
from drkm.machine import interrupts


def fitted(train: Any) -> ConstrDRKM:
    """Fit a model with two layers of 10 and 5 components; the progress bar is for terminals."""
    with interrupts.passed_on():
        return ConstrDRKM((10, 5), verbose=int(sys.stderr.isatty())).fit(train)


def write_explorer(subject: Subject, stem: Path) -> Path:
    """Write the explorer page of a model that was saved as STEM.safetensors, and say how to open it."""
    path = write_page(subject, stem.with_suffix(".html"))
    print(f"\nto see what it learned, open {path.resolve().as_uri()} in a browser,")
    print(f"or run {_command()} explore {stem.with_suffix('.safetensors')} --live --open to decode any codes")
    return path


def _command() -> str:
    """Return what to type for drkm: after `make demo` it is not on the search path, and is called as it was here."""
    return sys.argv[0] if shutil.which("drkm") is None and Path(sys.argv[0]).name == "drkm" else "drkm"
