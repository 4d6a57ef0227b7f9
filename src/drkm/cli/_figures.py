"""Writing of figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

FIGURES = (".png", ".svg", ".pdf")


def write_figure(out: Path, figure: Any) -> None:
    """Write a figure atomically in the house style, and close it."""
    from drkm.files import write_whole
    from drkm.plotting import save_undated, style

    with style() as plt:
        write_whole(out, partial(save_undated, figure, out.suffix[1:].lower()))
        plt.close(figure)
