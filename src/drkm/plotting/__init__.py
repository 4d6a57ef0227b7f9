"""Figures of models in one style, readable without colour vision; matplotlib is imported on first use.

Every `plot_…` function draws on `ax` or `axes` if they are given, else on a new figure, and returns the figure.
"""

from drkm.plotting._codes import plot_codes, plot_recovery
from drkm.plotting._fit import plot_convergence, plot_spectrum
from drkm.plotting._grid import image_grid
from drkm.plotting._points import plot_cleaning, scatter_before_after
from drkm.plotting._reconstructions import plot_reconstructions
from drkm.plotting._selection import plot_selection
from drkm.plotting._style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    PURPLE,
    SKY,
    STYLE,
    VERMILION,
    pyplot,
    save_undated,
    style,
)
from drkm.plotting._traversal import plot_traversal

__all__ = [
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "MARKERS",
    "ORANGE",
    "PURPLE",
    "SKY",
    "STYLE",
    "VERMILION",
    "image_grid",
    "plot_cleaning",
    "plot_codes",
    "plot_convergence",
    "plot_reconstructions",
    "plot_recovery",
    "plot_selection",
    "plot_spectrum",
    "plot_traversal",
    "pyplot",
    "save_undated",
    "scatter_before_after",
    "style",
]
