"""Grids of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.plotting._style import bare, canvas, style

#: inches per image, for the row names on the left, and for the column heads
CELL, LEFT, TOP = 0.8, 0.95, 0.35
#: inches per letter of a name, including its share of the gap to the image
LETTER = 0.075


def image_grid(images: np.ndarray, names: Sequence[str], heads: Sequence[str], axes: Any = None) -> Any:
    """Draw images (rows × columns × height × width [× 3], values from 0 to 1) with names and heads; return the figure.

    `names` are placed to the left of the rows, `heads` above the columns.
    """
    with style():
        figure, cells = cells_for_images(axes, images.shape, names, heads)
        for place, axis in np.ndenumerate(cells):
            axis.imshow(images[place], cmap="gray", vmin=0, vmax=1, aspect="auto")
    return figure


def cells_for_images(
    axes: Any, shape: Sequence[int], names: Sequence[str], heads: Sequence[str], right: float = 0.0
) -> tuple[Any, np.ndarray]:
    """Return a figure and bare axes for a grid of images with names and heads, with space on the right."""
    rows, columns, height, width = shape[:4]
    left = max(LEFT, LETTER * max((len(line) for name in names for line in name.splitlines()), default=0))
    size = (CELL * columns + left + right, CELL * rows * height / width + TOP)
    margins = {"left": left / size[0], "right": 1.0 - right / size[0], "top": 1.0 - TOP / size[1], "bottom": 0.0}
    figure, cells = canvas(axes, rows, columns, size, gridspec_kw={"wspace": 0.06, "hspace": 0.06, **margins})
    for axis in cells.flat:
        bare(axis)
    for axis, name in zip(cells[:, 0], names, strict=True):
        axis.text(-0.1, 0.5, name, transform=axis.transAxes, ha="right", va="center", fontsize=8)
    for axis, head in zip(cells[0], heads, strict=True):
        axis.set_title(head, fontsize=8, pad=3)
    return figure, cells


def unit_range(images: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scale image values between two bounds to 0 to 1."""
    return np.clip((images - low) / (high - low if high > low else 1.0), 0.0, 1.0)


def largest_change(differences: np.ndarray, colours: bool) -> np.ndarray:
    """Return differences of images, of the colour that differs most at each pixel: a mean would hide changes of hue."""
    if not colours:
        return differences
    most = np.abs(differences).argmax(axis=-1)
    return np.take_along_axis(differences, most[..., None], axis=-1)[..., 0]
