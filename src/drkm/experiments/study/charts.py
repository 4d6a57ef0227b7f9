"""The charts of the studies: which panel of a figure shows which runs; `drkm.experiments.study.drawing` draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from drkm.experiments.experiment import Row
from drkm.experiments.section import Figure
from drkm.experiments.study.drawing import Cell, Series, box_panels, dot_grid, line_grid
from drkm.experiments.study.groups import KERNEL_PCA
from drkm.experiments.study.rows import by_points, by_value, chosen, values_of
from drkm.experiments.study.scales import (
    DATASET_NAMES,
    FAMILY_NAMES,
    METRIC_NAMES,
    ONE_LAYER,
    Layers,
    StudySizes,
    label,
)
from drkm.plotting import BLUE, GREEN, ORANGE, PURPLE, VERMILION

#: colour of each family in every figure
FAMILY_COLOURS = {"paper": ORANGE, "drkm": BLUE, "kpca": GREEN, "kpca-centred": PURPLE, "beta-vae": VERMILION}
BOXES = "Box: quartiles, line: median, whiskers: extremes"

#: title of a panel or of a column of panels → its series
Panels = Mapping[str, Sequence[Series]]


def family(name: str, runs: Mapping[Any, Sequence[Row]]) -> Series:
    """Return the runs of one family as a series with its usual name and colour."""
    return Series(FAMILY_NAMES[name], FAMILY_COLOURS[name], runs)


def families_by_points(*names: str) -> Callable[[list[Row]], list[Series]]:
    """Return a function of rows that returns the runs of each family by number of training images."""
    return lambda rows: [family(name, by_points(chosen(rows, family=name))) for name in names]


def families_by_stack(stacks: Sequence[Layers], *names: str) -> Callable[[list[Row]], list[Series]]:
    """Return a function of rows that returns the runs of each family by architecture; kernel PCA has one layer."""

    def of(rows: list[Row], name: str) -> Series:
        own = (ONE_LAYER,) if name in KERNEL_PCA else stacks
        return family(name, {label(layers): chosen(rows, family=name, layers=layers) for layers in own})

    return lambda rows: [of(rows, name) for name in names]


def by_dataset(
    draw: Callable[..., list[Figure]],
    name: str,
    caption: str,
    series: Callable[[list[Row]], Sequence[Series]],
    **how: Any,
) -> Callable[[list[Row], StudySizes], list[Figure]]:
    """Return a function of rows that draws a panel for each dataset, by one of the functions below."""

    def charts(rows: list[Row], sizes: StudySizes) -> list[Figure]:
        panels = {DATASET_NAMES[dataset]: series(chosen(rows, dataset=dataset)) for dataset in sizes.datasets}
        return draw(name, caption, panels, **how)

    return charts


def boxes(name: str, caption: str, panels: Panels, xlabel: str = "", *, tilt: bool = False) -> list[Figure]:
    """Return a figure of box plots for each metric; name and caption contain {metric}."""

    def draw(metric: str) -> Any:
        cells = {title: Cell(metric, series) for title, series in panels.items()}
        return box_panels(cells, xlabel, tilt=tilt)

    return [
        Figure(name.format(metric=metric), caption.format(metric=title), partial(draw, metric))
        for metric, title in METRIC_NAMES.items()
    ]


def boxes_together(name: str, caption: str, panels: Panels, xlabel: str = "") -> list[Figure]:
    """Return one figure of box plots, with a column for each metric."""
    cells = {
        f"{title}, {METRIC_NAMES[metric]}": Cell(metric, series)
        for title, series in panels.items()
        for metric in METRIC_NAMES
    }
    return [Figure(name, caption, lambda: box_panels(cells, xlabel, columns=3))]


def lines(name: str, caption: str, columns: Panels, xlabel: str) -> list[Figure]:
    """Return one figure of line charts, with a row for each metric."""
    cells = {
        (title, column): Cell(metric, series)
        for metric, title in METRIC_NAMES.items()
        for column, series in columns.items()
    }
    return [Figure(name, caption, lambda: line_grid(cells, xlabel))]


def dots(
    name: str,
    caption: str,
    rows: Sequence[Row],
    *,
    scores: Mapping[str, str],
    along: str,
    labels: Mapping[Any, str],
    colours: Mapping[str, str],
    statistic: Callable[[Sequence[float]], float],
    ylabel: str,
) -> list[Figure]:
    """Return a figure with one number per model: a row of panels for each score, a column for each dataset.

    The number is the statistic of a score. The value of `along` in a row is its place on the horizontal axis; in
    `colours`, "chance" is the chance level of a score.
    """

    def numbers(here: list[Row], score: str) -> dict[str, float]:
        found = {model: statistic(values_of(group, score)) for model, group in by_value(here, "model").items()}
        chance = values_of(here, f"{score}_chance") if "chance" in colours else []
        return found | ({"chance": chance[0]} if chance else {})

    def draw() -> Any:
        cells = {
            (title, DATASET_NAMES[dataset]): {
                text: numbers(chosen(here, **{along: value}), score) for value, text in labels.items()
            }
            for score, title in scores.items()
            for dataset, here in by_value(shown, "dataset").items()
        }
        return dot_grid(cells, colours, ylabel)

    shown = chosen(rows, **{along: labels.__contains__})
    return [Figure(name, caption, draw)] if shown else []
