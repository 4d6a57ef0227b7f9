"""Figures of samples with their reconstructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.plotting._grid import cells_for_images, largest_change, unit_range
from drkm.plotting._model import feature_names_of, image_shape, numbers, reconstructed, samples_of, spread_of
from drkm.plotting._style import canvas, style, two_digits
from drkm.validation import checks

#: red is more, blue is less; readable with the common colour vision deficiencies
DIFFERENCES = "RdBu_r"
#: maximum number of table columns in a map
MOST_COLUMNS = 30
#: maximum number of letters of a row name above an image, and of a column name beside a map
MOST_LETTERS, LONGEST = 10, 30


def plot_reconstructions(
    model: Any,
    X: Any = None,
    *,
    shape: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
    row_names: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
    most: int = 8,
    axes: Any = None,
) -> Any:
    """Draw samples with their reconstructions, from the smallest to the largest error.

    Images are drawn above their reconstruction and the difference; a table is a map of the differences, x̂ - x in
    standard deviations of its column. The error of a sample is its root mean squared difference.

    Parameters
    ----------
    model : ConstrDRKM, or KernelPCA with `preimage`
    X : array of shape (m, d), optional
        Samples to draw; by default those of the fit.
    shape : (height, width) or (height, width, 3), optional
        Shape of images; without it samples are rows of a table.
    feature_names : sequence of str, optional
    row_names : sequence of m str, optional
        Names of the samples, of which the last letters are shown; by default "row 0", "row 1", ….
    limits : (black, white), optional
        Values of black and white in images; by default the smallest and the largest value of the samples. In the
        difference of colour images every pixel shows the colour that differs most.
    most : int, default=8
        Number of samples, evenly spaced over the ranks of their errors.
    axes : array of 3×most matplotlib axes for images, one for a table, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    checks.integer("most", most, 1)
    given = samples_of(model, X)
    samples, found = numbers(given), reconstructed(model, given)
    # Columns of a table may have different units, pixels share one.
    spread = spread_of(samples) if shape is None else np.ones(samples.shape[1])
    difference = (found - samples) / spread
    error = np.sqrt((difference**2).mean(axis=1))
    titles = _titles(row_names, len(samples))
    order = np.argsort(error, kind="stable")
    rows = order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int))]
    with style():
        if shape is not None:
            shape = image_shape(model, shape)
            heads = [f"{titles[row]}\nerror {two_digits(error[row])}" for row in rows]
            images = [values[rows].reshape(len(rows), *shape) for values in (samples, found, difference)]
            return _draw_images(axes, images, heads, limits or (samples.min(), samples.max()))
        names = feature_names_of(model, feature_names)
        shown = largest_columns(difference[rows])
        size = ((0.65 if row_names is None else 0.9) * len(rows) + 3.2, 0.22 * len(shown) + 1.0)
        figure, ((axis,),) = canvas(axes, 1, 1, size, layout="constrained")
        heads = [f"{titles[row]}\n{two_digits(error[row])}" for row in rows]
        drawn = difference_map(axis, difference[np.ix_(rows, shown)].T, [names[i] for i in shown], heads)
        figure.colorbar(drawn, ax=axis, label="reconstruction - sample, s.d.")
        axis.set_xlabel("sample and its error")
    return figure


def _titles(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return [f"row {row}" for row in range(count)]
    if len(names) != count:
        raise ValueError(f"row_names: expected one per sample, {count}, got {len(names)}")
    return [name if len(name) <= MOST_LETTERS else f"…{name[1 - MOST_LETTERS :]}" for name in map(str, names)]


def _draw_images(axes: Any, images: Sequence[np.ndarray], heads: Sequence[str], limits: tuple[float, float]) -> Any:
    samples, found, difference = images
    names = ["sample", "reconstruction", "reconstruction\n- sample"]
    colours = samples.ndim == 4
    figure, cells = cells_for_images(axes, (3, len(heads), *samples.shape[1:]), names, heads, right=0.6)
    for values, line in zip((samples, found), cells, strict=False):
        for axis, image in zip(line, unit_range(values, *limits), strict=True):
            axis.imshow(image, cmap="gray", vmin=0, vmax=1, aspect="auto")
    draw_differences(figure, cells[2:], largest_change(difference, colours)[None])
    return figure


def draw_differences(figure: Any, cells: np.ndarray, images: np.ndarray) -> None:
    """Draw differences with one colour scale, shown as a bar on the right."""
    limit = float(np.abs(images).max()) or 1.0
    for place, axis in np.ndenumerate(cells):
        drawn = axis.imshow(images[place], cmap=DIFFERENCES, vmin=-limit, vmax=limit, aspect="auto")
    last = cells[-1, -1].get_position()
    top = cells[0, -1].get_position().y1
    bar = figure.add_axes((last.x1 + 0.015, last.y0, 0.012, top - last.y0))
    figure.colorbar(drawn, cax=bar).ax.tick_params(labelsize=7)


def largest_columns(differences: np.ndarray) -> np.ndarray:
    """Return the columns that differ most, in their order, if there are too many for a map."""
    order = np.argsort(-(differences**2).sum(axis=0), kind="stable")
    return np.sort(order[:MOST_COLUMNS])


def _short(name: str) -> str:
    """Return a name without its middle if it would take the room of the figure."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[1 - half :]}"


def difference_map(
    axis: Any, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], limit: float | None = None
) -> Any:
    """Draw a table of differences as colours; white is no difference."""
    limit = limit or float(np.abs(values).max()) or 1.0
    drawn = axis.imshow(values, cmap=DIFFERENCES, vmin=-limit, vmax=limit, aspect="auto")
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), [_short(name) for name in rows])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return drawn
