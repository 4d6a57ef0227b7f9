"""Figures of data along components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drkm.plotting._grid import CELL, cells_for_images, unit_range
from drkm.plotting._model import (
    codes_of,
    columns_of,
    feature_names_of,
    image_shape,
    names_of,
    numbers,
    samples_of,
    spread_of,
)
from drkm.plotting._reconstructions import difference_map, draw_differences, largest_columns
from drkm.plotting._style import canvas, style, two_digits
from drkm.validation import checks
from drkm.wording import from_mean


@dataclass(frozen=True)
class Traversal:
    """Points along components, those with the largest effect first.

    Attributes
    ----------
    point : array of shape (d,)
        The base sample.
    changes : array of shape (components, values, d)
        Differences from the base sample.
    names, heads : labels of components and values
    effects : array of shape (components,)
        Root mean squared change.
    """

    point: np.ndarray
    changes: np.ndarray
    names: list[str]
    heads: list[str]
    effects: np.ndarray


def plot_traversal(
    model: Any,
    X: Any = None,
    *,
    components: Sequence[tuple[int, int]] | None = None,
    base: int | None = None,
    span: float = 2.0,
    steps: int = 7,
    most: int = 6,
    shape: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
    axes: Any = None,
) -> Any:
    """Draw how a sample changes along a component, for the components with the largest effect.

    Grey images are drawn as differences from the sample, which is shown on the left, colour images as they are. A
    table is drawn as one map per component, columns × values, with changes in standard deviations of the column. The
    effect of a component, below its name, is the root mean squared change.

    Parameters
    ----------
    model : ConstrDRKM, or KernelPCA with `preimage`
    X : array of shape (m, d), optional
        Samples whose codes determine the range; by default those of the fit.
    components : list of (layer, index), optional
        Components to draw; by default all of layer 1.
    base : int, optional
        Row of the base sample, which keeps its other codes; by default a typical one, with codes near their mean.
    span, steps : float, int, default=2.0, 7
        Codes take `steps` values up to this many standard deviations on both sides of their mean.
    most : int, default=6
        Number of components to draw.
    shape : (height, width) or (height, width, 3), optional
        Shape of images; without it samples are rows of a table.
    feature_names : sequence of str, optional
    limits : (black, white), optional
        Values of black and white in images; by default the smallest and the largest value of the samples, or of what is
        drawn if the model has not kept them.
    axes : array of matplotlib axes, optional
        Rows × (1 + steps) for images, 1 × components for a table.

    Returns
    -------
    matplotlib.figure.Figure
    """
    checks.integer("steps", steps, 1)
    checks.integer("most", most, 1)
    checks.real("span", span)
    columns = columns_of(model, components)
    spread = None if shape is not None else spread_of(numbers(samples_of(model, X)))
    found = traversal_of(model, codes_of(model, X), columns, base, (span, steps), spread, most)
    with style():
        if shape is not None:
            return _draw_images(axes, found, image_shape(model, shape), limits or _range(model, X, found))
        return _draw_tables(axes, found, feature_names_of(model, feature_names))


def traversal_of(
    model: Any,
    codes: np.ndarray,
    columns: Sequence[int],
    base: int | None,
    reach: tuple[float, int],
    spread: np.ndarray | None,
    most: int,
) -> Traversal:
    """Compute points along components, all decoded at once."""
    # Experiments are listed without torch, and their figures use this package.
    from drkm.inference.typical import typical_row

    span, steps = reach
    if base is None:
        base = typical_row(codes, getattr(model, "fitted_", None))
    if not -len(codes) <= base < len(codes):
        raise ValueError(f"base: expected a row from 0 to {len(codes) - 1}, got {base}")
    deviations = np.linspace(-span, span, steps)
    moved = np.repeat(codes[base][None], 1 + steps * len(columns), axis=0)
    for number, column in enumerate(columns):
        rows = slice(1 + number * steps, 1 + (number + 1) * steps)
        moved[rows, column] = codes[:, column].mean() + deviations * codes[:, column].std()
    points = numbers(model.inverse_transform(moved))
    changes = (points[1:] - points[0]).reshape(len(columns), steps, -1) / (1.0 if spread is None else spread)
    effects = np.sqrt((changes**2).mean(axis=(1, 2)))
    order = np.argsort(-effects, kind="stable")[:most]
    names = [names_of(model)[columns[i]] for i in order]
    heads = [from_mean(z) for z in deviations]
    return Traversal(points[0], changes[order], names, heads, effects[order])


def _range(model: Any, X: Any, found: Traversal) -> tuple[float, float]:
    """Return the smallest and the largest value of the samples, or of the moved points if there are no samples."""
    try:
        values = numbers(samples_of(model, X))
    except ValueError:
        values = found.point + found.changes
    return float(values.min()), float(values.max())


def _draw_images(axes: Any, found: Traversal, shape: tuple[int, ...], limits: tuple[float, float]) -> Any:
    rows, steps = found.changes.shape[:2]
    in_colour = len(shape) == 3
    names = [f"{name}\neffect {two_digits(effect)}" for name, effect in zip(found.names, found.effects, strict=True)]
    heads, right = ["sample", *found.heads], 0.0 if in_colour else 0.6
    figure, cells = cells_for_images(axes, (rows, 1 + steps, *shape), names, heads, right=right)
    for axis in cells[:, 0]:
        axis.imshow(unit_range(found.point.reshape(shape), *limits), cmap="gray", vmin=0, vmax=1, aspect="auto")
    if in_colour:
        moved = unit_range(found.point + found.changes, *limits).reshape(rows, steps, *shape)
        for place, axis in np.ndenumerate(cells[:, 1:]):
            axis.imshow(moved[place], cmap="gray", vmin=0, vmax=1, aspect="auto")
    else:
        draw_differences(figure, cells[:, 1:], found.changes.reshape(rows, steps, *shape))
    return figure


def _draw_tables(axes: Any, found: Traversal, names: Sequence[str]) -> Any:
    count, steps, _ = found.changes.shape
    shown = largest_columns(found.changes.reshape(count * steps, -1))
    size = (1.6 * CELL * count + 2.2, 0.22 * len(shown) + 1.4)
    figure, cells = canvas(axes, 1, count, size, sharey=axes is None, layout="constrained")
    limit = float(np.abs(found.changes[..., shown]).max()) or 1.0
    titles = zip(found.names, found.effects, strict=True)
    for axis, changes, (name, effect) in zip(cells[0], found.changes, titles, strict=True):
        ends = [found.heads[0].removesuffix(" s.d."), *[""] * (steps - 2), found.heads[-1].removesuffix(" s.d.")][
            :steps
        ]
        drawn = difference_map(axis, changes[:, shown].T, [names[i] for i in shown], ends, limit)
        axis.set_title(f"{name}\neffect {two_digits(effect)}")
    figure.supxlabel("value of the code, s.d. from its mean", fontsize=9)
    figure.colorbar(drawn, ax=list(cells[0]), label="change, s.d. of the column\n(effect: root mean square)")
    return figure
