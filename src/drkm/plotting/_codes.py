"""Figures of codes: against each other, and their recovery on other draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from drkm.plotting._model import codes_of, columns_of, names_of
from drkm.plotting._style import COLOURS, GREY, MARKERS, canvas, pyplot, style
from drkm.wording import as_label

#: maximum number of distinguishable classes: every colour with two markers
MOST_CLASSES = 2 * len(COLOURS)


def plot_codes(
    model: Any,
    X: Any = None,
    labels: Any = None,
    *,
    components: Sequence[tuple[int, int]] | None = None,
    axes: Any = None,
) -> Any:
    """Draw codes against each other, coloured by labels: a scatter matrix with histograms on its diagonal.

    Parameters
    ----------
    model : ConstrDRKM or KernelPCA
    X : array of shape (m, d), optional
        Samples to encode; by default those of the fit, whose codes are known.
    labels : sequence of m classes or numbers, optional
        Up to 14 different values are classes, each with a colour and a marker; more values, if they are numbers, are a
        colour scale.
    components : list of (layer, index), optional
        Components to draw; by default the first four of layer 1.
    axes : array of k×k matplotlib axes, optional
        For k components.

    Returns
    -------
    matplotlib.figure.Figure
    """
    codes = codes_of(model, X)
    columns = columns_of(model, components, 4)
    titles = [names_of(model)[column] for column in columns]
    groups, scale = _groups(labels, len(codes))
    count = len(columns)
    with style():
        figure, cells = canvas(axes, count, count, (1.7 * count + 1.2, 1.7 * count), layout="constrained")
        for (row, column), axis in np.ndenumerate(cells):
            _cell(axis, codes[:, columns[column]], codes[:, columns[row]], groups, scale, row - column)
            axis.set_xlabel(titles[column] if row == count - 1 else "")
            axis.set_ylabel(titles[row] if column == 0 and row > 0 else "")
        drawn = cells[-1, 0].collections
        if scale is not None and drawn:
            figure.colorbar(drawn[0], ax=list(cells.flat), shrink=0.6)
        elif labels is not None:
            shown = cells[-1, 0].get_legend_handles_labels()
            places = {"loc": "upper right", "ncols": 1 + (len(groups) > len(COLOURS))}
            cells[0, -1].legend(*shown, **places, markerscale=2, handletextpad=0.2)
    return figure


def _groups(labels: Any, count: int) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Return the samples of each class and None, or all samples as one class and their numbers."""
    if labels is None:
        return {"": np.ones(count, dtype=bool)}, None
    known = np.asarray(labels)
    if known.shape != (count,):
        raise ValueError(f"labels: expected one per sample, {count}, got {'×'.join(map(str, known.shape))}")
    try:
        known = known.astype(np.float64)
    except ValueError:
        known = known.astype(str)
    are_numbers = known.dtype == np.float64
    distinct = np.unique(known)
    if len(distinct) <= MOST_CLASSES:
        if are_numbers:
            # NaN is unequal to itself.
            return {as_label(value): np.isnan(known) if np.isnan(value) else known == value for value in distinct}, None
        return {str(value): known == value for value in distinct}, None
    if not are_numbers:
        raise ValueError(f"labels: {len(distinct)} classes cannot be told apart by colour, at most {MOST_CLASSES} can")
    return {"": np.ones(count, dtype=bool)}, known


def _cell(
    axis: Any, x: np.ndarray, y: np.ndarray, groups: dict[str, np.ndarray], scale: np.ndarray | None, below: int
) -> None:
    """Draw one cell: points below the diagonal, histograms on it, nothing above."""
    axis.set_xticks([])
    axis.set_yticks([])
    if below < 0:
        axis.set_axis_off()
        return
    bins = np.linspace(x.min(), x.max(), 25)
    for i, (name, members) in enumerate(groups.items()):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i // len(COLOURS)]
        if below == 0:
            axis.hist(x[members], bins, histtype="step", color=GREY if scale is not None else colour, label=name)
            axis.spines["left"].set_visible(False)
        elif scale is not None:
            # Points without a number are grey.
            colours = pyplot().get_cmap("viridis").with_extremes(bad=GREY)
            axis.scatter(x, y, s=4, c=scale, cmap=colours, plotnonfinite=True, linewidths=0, rasterized=True)
        else:
            axis.scatter(
                x[members], y[members], s=5, color=colour, marker=marker, linewidths=0, label=name, rasterized=True
            )


def plot_recovery(models: Sequence[Any], X: Any, ax: Any = None) -> Any:
    """Draw how far each component is recovered on other draws of samples.

    The share of the variance of a code of X that is explained by a linear map of another model's codes of the same
    layer: 1 if the other draw recovers it completely. One dot per other model; the bar is the mean over all ordered
    pairs.

    Parameters
    ----------
    models : sequence of ConstrDRKM
        Two or more models with the same parameters, fitted to different samples.
    X : array of shape (m, d)
        Samples to encode with all models, preferably samples that none was fitted to.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    layers = getattr(models[0], "layer_slices_", None) or (slice(None),)
    if len(models) < 2 or any((getattr(m, "layer_slices_", None) or (slice(None),)) != layers for m in models):
        raise ValueError("models: expected two or more with the same layers")
    codes = [codes_of(model, X) for model in models]
    shares = np.array(
        [
            np.concatenate([recovered(one[:, layer], other[:, layer]) for layer in layers])
            for one, other in permutations(codes, 2)
        ]
    )
    places = np.arange(shares.shape[1])
    with style():
        figure, ((axis,),) = canvas(ax, 1, 1, (0.3 * len(places) + 1.8, 3.0), layout="constrained")
        for number, layer in enumerate(layers):
            own = places[layer]
            axis.bar(own, shares[:, layer].mean(axis=0), color=COLOURS[number % len(COLOURS)], alpha=0.35, width=0.75)
            axis.plot(own, shares[:, layer].T, "o", markersize=3, color=COLOURS[number % len(COLOURS)])
            label = f"layer {number + 1}: {shares[:, layer].mean():.2f}"
            axis.text(own.mean(), 1.04, label, ha="center", color=COLOURS[number % len(COLOURS)])
        axis.set_ylim(0, 1.12)
        axis.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_xticks(places, [name.rpartition("_")[2] for name in names_of(models[0])])
        axis.set_xlabel("component")
        axis.set_ylabel("recovered on other draws")
    return figure


def recovered(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the share of each column's variance that a linear map of the other columns explains."""
    one, other = one - one.mean(axis=0), other - other.mean(axis=0)
    basis, lengths, _ = np.linalg.svd(other, full_matrices=False)
    basis = basis[:, lengths > lengths.max(initial=0.0) * 1e-10]
    total = (one**2).sum(axis=0)
    return ((basis.T @ one) ** 2).sum(axis=0) / np.where(total > 0, total, 1.0)
