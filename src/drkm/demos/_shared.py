"""What the demos share: the model, its explorer page, and rows of images in a figure."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drkm.estimator import ConstrDRKM
from drkm.explorer import Subject, write_page
from drkm.machine import interrupts
from drkm.plotting import image_grid


def fitted(train: Any) -> ConstrDRKM:
    """Fit a model with two layers of 10 and 5 components; the progress bar is for terminals."""
    with interrupts.passed_on():
        return ConstrDRKM((10, 5), verbose=int(sys.stderr.isatty())).fit(train)


def draw_rows(figure: Any, rows: Sequence[np.ndarray], names: Sequence[str], title: str) -> None:
    """Draw rows of square images, with values from 0 to 1, into a figure or a part of one."""
    figure.suptitle(title, fontsize=10)
    side = round(rows[0].shape[1] ** 0.5)
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    image_grid(np.reshape(rows, (*axes.shape, side, side)), names, [""] * axes.shape[1], axes)
    for axis in axes.flat:
        axis.set_box_aspect(1)
        axis.spines[:].set(visible=True, linewidth=0.4)


def write_explorer(subject: Subject, stem: Path) -> Path:
    """Write the explorer page of a model that was saved as STEM.safetensors, and say how to open it."""
    path = write_page(subject, stem.with_suffix(".html"))
    print(f"\nto see what it learned, open {path.resolve().as_uri()} in a browser,")
    print(f"or run {_command()} explore {stem.with_suffix('.safetensors')} --live --open to decode any codes")
    return path


def _command() -> str:
    """Return what to type for drkm: after `make demo` it is not on the search path, and is called as it was here."""
    return sys.argv[0] if shutil.which("drkm") is None and Path(sys.argv[0]).name == "drkm" else "drkm"
