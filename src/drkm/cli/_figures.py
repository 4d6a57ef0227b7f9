"""Figures to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FIGURES = (".png", ".svg", ".pdf")


def write_figure(out: Path, figure: Any) -> None:
    """Write a figure whole or not at all, in the house style, and let go of it."""
    from drkm.files import write_whole
    from drkm.plotting import style

    with style() as plt:
        write_whole(out, lambda file: figure.savefig(file, format=out.suffix[1:].lower()))
        plt.close(figure)
