"""One style for all figures, readable without colour vision; matplotlib is imported when a figure is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from drkm.selection import Selection

#: Okabe and Ito's palette, which people with any of the common colour deficiencies can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLOURS
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
    """Return matplotlib.pyplot, or say what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'drkm[plot]'") from error
    return plt


@contextmanager
def style() -> Iterator[Any]:
    """Give matplotlib.pyplot with the house style, and leave the caller's settings as they were."""
    plt = pyplot()
    from cycler import cycler

    with plt.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        yield plt


def scatter_before_after(
    axes: Any, noisy: np.ndarray, denoised: np.ndarray, title: str = "", clean: np.ndarray | None = None
) -> None:
    """Draw noisy points small and grey, denoised ones larger and blue, and the true curve as a thin line of dots."""
    axes.scatter(*noisy.T, s=2, color=GREY, linewidths=0, label="noisy", rasterized=True)
    if clean is not None:
        axes.scatter(*clean.T, s=0.5, color=VERMILION, linewidths=0, label="true curve", rasterized=True)
    axes.scatter(*denoised.T, s=5, color=BLUE, linewidths=0, label="denoised", rasterized=True)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(title)


def plot_cleaning(before: np.ndarray, after: np.ndarray) -> Any:
    """Return a figure of samples before and after cleaning, in the plane in which the cleaned ones vary most."""
    pyplot()
    from matplotlib.figure import Figure

    mean = after.mean(axis=0)
    plane = np.eye(2) if after.shape[1] == 2 else np.linalg.svd(after - mean, full_matrices=False)[2][:2].T
    points = [(part - mean) @ plane for part in (before, after)]
    if points[0].shape[1] == 1:
        points = [np.column_stack([part, np.arange(len(part)) / len(part)]) for part in points]
    with style():
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        sides = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, part, title, colour in zip(sides, points, ("before", "after"), (GREY, BLUE), strict=True):
            axes.scatter(*part.T, s=4, color=colour, linewidths=0)
            axes.set_title(title)
            axes.set_aspect("equal")
            axes.set_xlabel("first principal axis")
        sides[0].set_ylabel("second principal axis")
    return figure


def image_grid(images: np.ndarray, names: Sequence[str], heads: Sequence[str]) -> Any:
    """Return a figure of images (rows × columns × height × width [× 3], values from 0 to 1) with names and heads.

    `names` stand to the left of the rows, `heads` above the columns.
    """
    pyplot()
    from matplotlib.figure import Figure

    rows, columns, height, width = images.shape[:4]
    cell, left, top = 0.8, 0.8, 0.25  # inches
    size = (cell * columns + left, cell * rows * height / width + top)
    figure = Figure(figsize=size, dpi=150)
    margins = {"left": left / size[0], "right": 1.0, "top": 1.0 - top / size[1], "bottom": 0.0}
    cells = figure.subplots(rows, columns, squeeze=False, gridspec_kw={"wspace": 0.06, "hspace": 0.06, **margins})
    for line, row, name in zip(cells, images, names, strict=True):
        for axis, image in zip(line, row, strict=True):
            axis.imshow(image, cmap="gray", vmin=0, vmax=1, aspect="auto")
            axis.set_axis_off()
        line[0].text(-0.1, 0.5, name, transform=line[0].transAxes, ha="right", va="center", fontsize=8)
    for axis, head in zip(cells[0], heads, strict=True):
        axis.set_title(head, fontsize=8, pad=3)
    return figure


def plot_selection(selection: Selection, axes: Any = None) -> Any:
    """Draw the criterion against the number of components, and the eigenvalues of the chosen model."""
    with style() as plt:
        if axes is None:
            figure, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained")
        else:
            figure = axes[0].figure
        curve, spectrum = axes
        lines = selection.curves()
        for i, (label, points) in enumerate(lines.items()):
            x, y = np.array(sorted(points)).T
            curve.plot(
                x,
                y,
                marker=MARKERS[i % len(MARKERS)],
                markersize=3,
                color=COLOURS[i % len(COLOURS)],
                label=label or None,
            )
        best = selection.table[selection.best_index]
        curve.scatter(
            best["n_components"], best["criterion"], s=90, facecolors="none", edgecolors="black", label="chosen"
        )
        values = [criterion for points in lines.values() for _, criterion in points]
        low, middle = min(values), float(np.median(values))
        if middle > low:
            curve.set_ylim(low - 0.1 * (middle - low), low + 2.5 * (middle - low))
        curve.set_xlabel("components used")
        curve.set_ylabel(f"estimated {selection.criterion}" if selection.criterion == "risk" else "error")
        if len(lines) <= 6:
            curve.legend()
        for layer, eigenvalues in enumerate(selection.spectra, 1):
            positive = np.maximum(np.asarray(eigenvalues, dtype=float), 1e-300)
            spectrum.semilogy(
                np.arange(1, len(positive) + 1),
                positive,
                marker=MARKERS[(layer - 1) % len(MARKERS)],
                markersize=3,
                label=f"layer {layer}",
            )
        spectrum.set_xlabel("component")
        spectrum.set_ylabel("eigenvalue")
        if selection.spectra:
            spectrum.legend()
        else:
            spectrum.text(0.5, 0.5, "no model was fitted: refit=False", ha="center", transform=spectrum.transAxes)
        for axis in axes:
            axis.xaxis.get_major_locator().set_params(integer=True)
    return figure
