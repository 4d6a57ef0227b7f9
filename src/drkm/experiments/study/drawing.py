"""Box plots and line charts of scores in the style of the paper, always with the chance level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.study.rows import values_of
from drkm.experiments.study.scales import METRIC_NAMES
from drkm.plotting import GREY, MARKERS, style

CHANCE = "chance (shuffled codes)"


class Series(NamedTuple):
    """Runs of one kind: its name, its colour, and the runs at each place on the horizontal axis."""

    name: str
    colour: str
    runs: Mapping[Any, Sequence[Row]]


class Cell(NamedTuple):
    """One panel: a metric and the series whose runs are shown in it."""

    metric: str
    series: Sequence[Series]


def box_panels(panels: Mapping[str, Cell], xlabel: str = "", *, columns: int = 2, tilt: bool = False) -> Any:
    """Return titled panels of box plots: quartiles, medians, and whiskers to the extremes."""
    wide = min(columns, len(panels))
    lines = math.ceil(len(panels) / wide)
    with style() as plt:
        figure, axes = plt.subplots(
            # A single panel has many boxes, so it is as wide as two.
            lines,
            wide,
            # Tilted labels are long.
            figsize=(4.6 * max(2, wide), (3.4 if tilt else 2.5) * lines + 0.6),
            layout="constrained",
            squeeze=False,
        )
        for place, (title, cell) in zip(axes.flat, panels.items(), strict=False):
            _draw_boxes(place, cell.series, cell.metric)
            place.set_title(title)
            place.set_ylabel(METRIC_NAMES[cell.metric])
            place.set_xlabel(xlabel)
            if tilt:
                plt.setp(place.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")
        for place in axes.flat[len(panels) :]:
            place.set_axis_off()
        _legend_below(figure, axes.flat)
    return figure


def _draw_boxes(axes: Any, series: Sequence[Series], metric: str) -> None:
    labels = list(dict.fromkeys(label for one in series for label in one.runs))
    # A label that only some series have, such as a value of γ, gives them its full width.
    kinds = {label: [k for k, one in enumerate(series) if label in one.runs] for label in labels}
    for k, one in enumerate(series):
        for label, rows in one.runs.items():
            values = values_of(rows, metric)
            if not values:
                continue
            width = 0.8 / len(kinds[label])
            x = labels.index(label) + width * (kinds[label].index(k) - (len(kinds[label]) - 1) / 2)
            width = min(0.75 * width, 0.4)
            _draw_box(axes, x, width, values, one.colour)
            chance = values_of(rows, f"{metric}_chance")
            if chance:
                axes.plot([x - width / 2, x + width / 2], [np.mean(chance)] * 2, color="black", linewidth=1.2, ls=":")
        # A label that is the name of its series says all that a legend would.
        if list(one.runs) != [one.name]:
            axes.plot([], [], "s", color=one.colour, label=one.name)
    axes.plot([], [], color="black", linewidth=1.2, ls=":", label=CHANCE)
    axes.set_xticks(range(len(labels)), [str(label) for label in labels])
    axes.set_xlim(-0.6, len(labels) - 0.4)
    # The chance level of MIG and SAP is near 0, that of IRS far from it.
    if metric != "irs":
        axes.set_ylim(bottom=0)


def _draw_box(axes: Any, x: float, width: float, values: Sequence[float], colour: str) -> None:
    axes.boxplot(
        [values],
        positions=[x],
        widths=[width],
        whis=(0, 100),
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.35, "edgecolor": colour, "linewidth": 1},
        medianprops={"color": colour, "linewidth": 2},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    if len(values) <= 5:
        axes.scatter([x] * len(values), values, s=6, color=colour, zorder=3, linewidths=0)


def line_grid(cells: Mapping[tuple[str, str], Cell], xlabel: str) -> Any:
    """Return a grid of line charts by (row, column): means with a band of one standard error, chance dotted."""
    with style() as plt:
        figure, places = _grid(plt, cells, _draw_lines, xlabel=xlabel)
        for key, cell in cells.items():
            if cell.metric != "irs":
                places[key].set_ylim(bottom=0)
        _legend_below(figure, places.values())
    return figure


def dot_grid(
    cells: Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]], colours: Mapping[str, str], ylabel: str
) -> Any:
    """Return a grid of panels by (row, column); each maps a label on the horizontal axis to one number per series."""
    with style() as plt:
        draw = partial(_draw_dots, colours=colours)
        figure, places = _grid(plt, cells, draw, ylabel=f"\n{ylabel}")
        for place in places.values():
            place.set_ylim(bottom=0)
        _legend_below(figure, places.values())
    return figure


def _grid(
    plt: Any,
    cells: Mapping[tuple[str, str], Any],
    draw: Callable[[Any, Any], None],
    *,
    size: Callable[[int, int], tuple[float, float]] = lambda rows, columns: (max(4.6, 2.8 * columns), 2.1 * rows + 0.7),
    sharey: bool | str = "row",
    xlabel: str = "",
    ylabel: str = "",
) -> tuple[Any, dict[tuple[str, str], Any]]:
    """Return a figure and its axes by (row, column), with a cell drawn in each; `size` is that of so many of them."""
    rows, columns = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    shape = len(rows), len(columns)
    shared: dict[str, Any] = {"squeeze": False, "sharex": "col", "sharey": sharey}
    figure, axes = plt.subplots(*shape, figsize=size(*shape), layout="constrained", **shared)
    places = {(row, column): axes[rows.index(row), columns.index(column)] for row, column in cells}
    for (row, column), place in places.items():
        draw(place, cells[row, column])
        if row == rows[0]:
            place.set_title(column)
        if row == rows[-1]:
            place.set_xlabel(xlabel)
        if column == columns[0]:
            place.set_ylabel(row + ylabel)
    return figure, places


def _draw_lines(axes: Any, cell: Cell) -> None:
    for k, line in enumerate(cell.series):
        _draw_line(axes, line, cell.metric, MARKERS[k % len(MARKERS)])
    axes.set_xscale("log")
    ticks = sorted({x for line in cell.series for x in line.runs})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.plot([], [], ":", color=GREY, label=CHANCE)


def _draw_line(axes: Any, line: Series, metric: str, marker: str) -> None:
    points = [(x, values_of(rows, metric), values_of(rows, f"{metric}_chance")) for x, rows in line.runs.items()]
    points = sorted((point for point in points if point[1]), key=lambda point: point[0])
    if not points:
        return
    x = [point[0] for point in points]
    mean = np.array([np.mean(values) for _, values, _ in points])
    error = np.array(
        [np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0 for _, values, _ in points]
    )
    axes.plot(x, mean, marker=marker, markersize=4, color=line.colour, label=line.name)
    axes.fill_between(x, mean - error, mean + error, color=line.colour, alpha=0.2, linewidth=0)
    if all(chance for *_, chance in points):
        axes.plot(x, [np.mean(chance) for *_, chance in points], ":", color=line.colour, linewidth=1)


def _draw_dots(axes: Any, labels: Mapping[str, Mapping[str, float]], colours: Mapping[str, str]) -> None:
    for k, (name, colour) in enumerate(colours.items()):
        x = [i + 0.13 * (k - (len(colours) - 1) / 2) for i, found in enumerate(labels.values()) if name in found]
        y = [found[name] for found in labels.values() if name in found]
        if x:
            axes.scatter(x, y, s=28, color=colour, marker=MARKERS[k], label=name, zorder=3, clip_on=False)
            axes.vlines(x, 0, y, color=colour, linewidth=1)
    axes.set_xticks(range(len(labels)), list(labels), fontsize=8)
    axes.set_xlim(-0.6, len(labels) - 0.4)


class Intervals(NamedTuple):
    """An estimate with a narrow interval and a wide one, in a colour."""

    estimate: float
    narrow: tuple[float, float]
    wide: tuple[float, float]
    colour: str


def interval_grid(cells: Mapping[tuple[str, str], Mapping[str, Intervals]]) -> Any:
    """Return a grid of panels by (row, column): named estimates with their intervals, and a line at 0."""
    names = list(dict.fromkeys(name for cell in cells.values() for name in cell))
    with style() as plt:
        figure, places = _grid(
            plt,
            cells,
            partial(_draw_intervals, names=names),
            size=lambda rows, columns: (2.4 * columns + 2.4, (0.22 * len(names) + 0.4) * rows + 0.6),
            sharey=True,
        )
        for (_, column), place in places.items():
            # Use the narrow intervals: with few draws the wide ones are far too long.
            below = [one for (_, here), cell in cells.items() if here == column for one in cell.values()]
            edge = 1.15 * max(abs(end) for one in below for end in one.narrow) or 1.0
            place.set_xlim(-edge, edge)
        first = next(iter(places.values()))
        first.set_yticks(range(len(names)), names, fontsize=8)
        first.set_ylim(len(names) - 0.5, -0.5)
    return figure


def _draw_intervals(axes: Any, cell: Mapping[str, Intervals], names: Sequence[str]) -> None:
    for name, one in cell.items():
        y = names.index(name)
        axes.plot(one.wide, [y, y], color=one.colour, linewidth=1)
        axes.plot(one.narrow, [y, y], color=one.colour, linewidth=3)
        axes.plot([one.estimate], [y], "o", color=one.colour, markersize=4)
    axes.axvline(0, color="black", linewidth=0.8)


def _legend_below(figure: Any, axes: Iterable[Any]) -> None:
    found: dict[str, Any] = {}
    for place in axes:
        handles, labels = place.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    columns = len(found) if len(found) <= 5 else 4
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)
