"""One style for all figures, readable without colour vision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

#: Okabe and Ito's palette, distinguishable with the common colour vision deficiencies
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]
GREY = "#9A9A9A"
MARKERS = "osD^vPX"

STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "drkm",
    "svg.fonttype": "none",
}


def pyplot() -> Any:
    """Return matplotlib.pyplot, or raise an error that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'drkm[plot]'") from error
    return plt


def two_digits(value: float) -> str:
    """Return a number with two significant digits, zeros among them, so that a row of numbers is of one kind."""
    return f"{value:#.2g}".rstrip(".")


@contextmanager
def style() -> Iterator[Any]:
    """Yield matplotlib.pyplot with the house style, and restore the caller's settings."""
    plt = pyplot()
    from cycler import cycler

    with plt.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        yield plt


def save_undated(figure: Any, kind: str, file: BinaryIO, **how: Any) -> None:
    """Write a figure as png, svg or pdf, without a date, so that the same figure gives the same file."""
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure.savefig(file, format=kind, metadata=metadata, **how)


def canvas(axes: Any, rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Any, np.ndarray]:
    """Return a figure and its rows×columns axes: the caller's, or new ones of that size in inches."""
    if axes is None:
        figure, made = pyplot().subplots(rows, columns, figsize=size, squeeze=False, **more)
        return figure, made
    given = np.array(axes, dtype=object).reshape(-1)
    if len(given) != rows * columns:
        raise ValueError(f"axes: expected {rows}×{columns} axes, got {len(given)}")
    return given[0].figure, given.reshape(rows, columns)


def bare(axis: Any) -> None:
    """Remove ticks and frame."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
