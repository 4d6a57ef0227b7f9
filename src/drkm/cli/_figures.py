"""Writing of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FIGURES = (".png", ".svg", ".pdf")


def write_figure(out: Path, figure: Any) -> None:
    """Write a figure atomically in the house style, and close it."""
    from drkm.files import write_whole
    from drkm.plotting import style

    with style() as plt:
        write_whole(out, lambda file: figure.savefig(file, format=out.suffix[1:].lower()))
        plt.close(figure)
