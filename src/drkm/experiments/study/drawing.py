"""Box plots and line charts of scores in the style of the paper, always with the chance level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
            figsize=(4.6 * max(2, wide), 2.5 * lines + 0.6),
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
    return _grid(cells, _draw_lines, xlabel=xlabel, from_zero=lambda cell: cell.metric != "irs")


def dot_grid(
    cells: Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]], colours: Mapping[str, str], ylabel: str
) -> Any:
    """Return a grid of panels by (row, column); each maps a label on the horizontal axis to one number per series."""
    return _grid(cells, lambda place, labels: _draw_dots(place, labels, colours), ylabel=f"\n{ylabel}")


def _grid(
    cells: Mapping[tuple[str, str], Any],
    paint: Callable[[Any, Any], None],
    *,
    xlabel: str = "",
    ylabel: str = "",
    from_zero: Callable[[Any], bool] = lambda cell: True,
) -> Any:
    """Return painted panels by (row, column), with shared axes and a legend below."""
    rows, columns = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    size = (max(4.6, 2.8 * len(columns)), 2.1 * len(rows) + 0.7)
    shared: dict[str, Any] = {"squeeze": False, "sharex": "col", "sharey": "row"}
    with style() as plt:
        figure, axes = plt.subplots(len(rows), len(columns), figsize=size, layout="constrained", **shared)
        for (row, column), cell in cells.items():
            place = axes[rows.index(row), columns.index(column)]
            paint(place, cell)
            if row == rows[0]:
                place.set_title(column)
            if row == rows[-1]:
                place.set_xlabel(xlabel)
            if column == columns[0]:
                place.set_ylabel(row + ylabel)
        # Panels of a row share an axis, whose limits are known only after all are drawn.
        for (row, _), cell in cells.items():
            if from_zero(cell):
                axes[rows.index(row), 0].set_ylim(bottom=0)
        _legend_below(figure, axes.flat)
    return figure


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
    rows, columns = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    names = list(dict.fromkeys(name for cell in cells.values() for name in cell))
    size = (2.4 * len(columns) + 2.4, (0.22 * len(names) + 0.4) * len(rows) + 0.6)
    shared: dict[str, Any] = {"squeeze": False, "sharex": "col", "sharey": True}
    with style() as plt:
        figure, axes = plt.subplots(len(rows), len(columns), figsize=size, layout="constrained", **shared)
        for (row, column), cell in cells.items():
            place = axes[rows.index(row), columns.index(column)]
            for name, one in cell.items():
                y = names.index(name)
                place.plot(one.wide, [y, y], color=one.colour, linewidth=1)
                place.plot(one.narrow, [y, y], color=one.colour, linewidth=3)
                place.plot([one.estimate], [y], "o", color=one.colour, markersize=4)
            place.axvline(0, color="black", linewidth=0.8)
            if row == rows[0]:
                place.set_title(column)
            if column == columns[0]:
                place.set_ylabel(row)
        for j, column in enumerate(columns):
            # Use the narrow intervals: with few draws the wide ones are far too long.
            ends = [
                end
                for (_, here), cell in cells.items()
                if here == column
                for one in cell.values()
                for end in one.narrow
            ]
            edge = 1.15 * max(map(abs, ends)) or 1.0
            axes[0, j].set_xlim(-edge, edge)
        axes[0, 0].set_yticks(range(len(names)), names, fontsize=8)
        axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _legend_below(figure: Any, axes: Any) -> None:
    found: dict[str, Any] = {}
    for place in axes:
        handles, labels = place.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    columns = len(found) if len(found) <= 5 else 4
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)
