"""Figures of a selection by `drkm.select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drkm.plotting._fit import draw_spectra
from drkm.plotting._style import COLOURS, MARKERS, canvas, style

if TYPE_CHECKING:
    from drkm.selection import Selection


def plot_selection(selection: Selection, axes: Any = None) -> Any:
    """Draw the criterion against the number of components, and the eigenvalues of the chosen model."""
    with style():
        figure, ((curve, spectrum),) = canvas(axes, 1, 2, (7.5, 3), layout="constrained")
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
        if selection.spectra:
            layers = [f"layer {layer}" for layer in range(1, len(selection.spectra) + 1)]
            draw_spectra(
                spectrum, [np.asarray(values, dtype=float) for values in selection.spectra], layers, "eigenvalue"
            )
        else:
            spectrum.text(0.5, 0.5, "no model was fitted: refit=False", ha="center", transform=spectrum.transAxes)
        for axis in (curve, spectrum):
            axis.xaxis.get_major_locator().set_params(integer=True)
    return figure
