"""Charts as data: which runs stand where in the panels of a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from drkm.experiments.experiment import Row
from drkm.experiments.section import Figure
from drkm.experiments.study.drawing import Cell, Series, box_panels, dot_grid, line_grid
from drkm.experiments.study.rows import by_points, by_value, chosen, values_of
from drkm.experiments.study.scales import (
    DATASET_NAMES,
    FAMILY_NAMES,
    METRIC_NAMES,
    Layers,
    StudySizes,
    label,
)
from drkm.plotting import BLUE, GREEN, ORANGE, PURPLE, VERMILION

#: colour of each family in every figure
FAMILY_COLOURS = {"paper": ORANGE, "drkm": BLUE, "kpca": GREEN, "kpca-centred": PURPLE, "beta-vae": VERMILION}
BOXES = "Box: quartiles, line: median, whiskers: extremes"

#: rows of one kind → those at each place on the horizontal axis
Along = Callable[[list[Row], StudySizes], Mapping[Any, Sequence[Row]]]


def points(rows: list[Row], sizes: StudySizes) -> dict[int, list[Row]]:
    """Put runs along the number of training images."""
    return by_points(rows)


def stacks(layers: Iterable[Layers]) -> Along:
    """Put runs along these architectures; those of one that was not run are none."""
    return lambda rows, sizes: {label(one): chosen(rows, layers=one) for one in layers}


def values(name: str, text: str = "") -> Along:
    """Put runs along the values of a hyperparameter, as numbers or as a text that holds {}."""

    def along(rows: list[Row], sizes: StudySizes) -> dict[Any, list[Row]]:
        found = sorted(by_value(rows, name).items())
        return {text.format(f"{value:g}") if text else value: group for value, group in found}

    return along


def at(text: str) -> Along:
    """Put all runs at one place."""
    return lambda rows, sizes: {text: rows}


@dataclass(frozen=True)
class Kind:
    """Runs that are drawn alike: their name and colour, which they are, and how they stand on the horizontal axis."""

    name: str
    colour: str
    where: Mapping[str, Any]
    along: Along

    def series(self, rows: Iterable[Row], sizes: StudySizes) -> Series:
        """Return what is drawn of these rows."""
        return Series(self.name, self.colour, self.along(chosen(rows, **self.where), sizes))


def family(name: str, along: Along, **where: Any) -> Kind:
    """Return the runs of one family, under the name and in the colour that it has in every figure."""
    return Kind(FAMILY_NAMES[name], FAMILY_COLOURS[name], {"family": name, **where}, along)


def _cell(metric: str, kinds: Sequence[Kind], rows: list[Row], sizes: StudySizes) -> Cell:
    return Cell(metric, [kind.series(rows, sizes) for kind in kinds])


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """Box plots with a panel for each dataset: a figure for each metric, or one for all of them together."""

    #: may hold {metric}
    name: str
    caption: str
    kinds: Sequence[Kind]
    #: which rows are shown
    where: Mapping[str, Any] = field(default_factory=dict)
    #: attribute of a scale
    datasets: str = "datasets"
    xlabel: str = ""
    tilt: bool = False
    together: bool = False

    def __call__(self, rows: list[Row], sizes: StudySizes) -> list[Figure]:
        """Return the figures."""
        rows = chosen(rows, **self.where)
        if not rows:
            return []
        if self.together:
            return [Figure(self.name, self.caption, partial(self._draw, rows, sizes, tuple(METRIC_NAMES)))]
        return [
            Figure(
                self.name.format(metric=metric),
                self.caption.format(metric=title),
                partial(self._draw, rows, sizes, (metric,)),
            )
            for metric, title in METRIC_NAMES.items()
        ]

    def _draw(self, rows: list[Row], sizes: StudySizes, metrics: Sequence[str]) -> Any:
        panels = {
            DATASET_NAMES[dataset] + (f", {METRIC_NAMES[metric]}" if self.together else ""): _cell(
                metric, self.kinds, chosen(rows, dataset=dataset), sizes
            )
            for dataset in sizes.every(self.datasets)
            for metric in metrics
        }
        return box_panels(panels, self.xlabel, columns=3 if self.together else 2, tilt=self.tilt)


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Line charts with a row for each metric: a figure for each dataset, or a column for each in one."""

    #: may hold {dataset}
    name: str
    caption: str
    xlabel: str
    #: of the figure of each dataset
    columns: Mapping[str, Sequence[Kind]] = field(default_factory=dict)
    #: what is drawn in one figure whose columns are the datasets
    kinds: Sequence[Kind] = ()

    def __call__(self, rows: list[Row], sizes: StudySizes) -> list[Figure]:
        """Return the figures."""
        found = by_value(rows, "dataset")
        if self.kinds:
            columns = {DATASET_NAMES[name]: (self.kinds, found.get(name, [])) for name in sizes.datasets}
            return [Figure(self.name, self.caption, partial(self._draw, columns, sizes))]
        return [
            Figure(
                self.name.format(dataset=dataset),
                self.caption.format(dataset=DATASET_NAMES[dataset]),
                partial(self._draw, {name: (kinds, here) for name, kinds in self.columns.items()}, sizes),
            )
            for dataset, here in found.items()
        ]

    def _draw(self, columns: Mapping[str, tuple[Sequence[Kind], list[Row]]], sizes: StudySizes) -> Any:
        cells = {
            (title, column): _cell(metric, kinds, rows, sizes)
            for metric, title in METRIC_NAMES.items()
            for column, (kinds, rows) in columns.items()
        }
        return line_grid(cells, self.xlabel)


@dataclass(frozen=True, kw_only=True)
class Dots:
    """One number of each model: a row of panels for each score, a column for each dataset."""

    name: str
    #: may hold {start_points}
    caption: str
    #: score → title
    scores: Mapping[str, str]
    #: value of rows → label on the horizontal axis
    along: str
    labels: Mapping[Any, str]
    #: model → colour; "chance" stands for the chance level of a score
    colours: Mapping[str, str]
    #: values of a score → the number, and what it is
    statistic: Callable[[Sequence[float]], float]
    ylabel: str

    def __call__(self, rows: list[Row], sizes: StudySizes) -> list[Figure]:
        """Return the figure, if there is anything to show."""
        rows = chosen(rows, **{self.along: self.labels.__contains__})
        caption = self.caption.format(start_points=sizes.start_points)
        return [Figure(self.name, caption, partial(self._draw, rows))] if rows else []

    def _draw(self, rows: list[Row]) -> Any:
        cells = {
            (title, DATASET_NAMES[dataset]): {
                text: self._numbers(chosen(here, **{self.along: value}), score) for value, text in self.labels.items()
            }
            for score, title in self.scores.items()
            for dataset, here in by_value(rows, "dataset").items()
        }
        return dot_grid(cells, self.colours, self.ylabel)

    def _numbers(self, rows: list[Row], score: str) -> dict[str, float]:
        found = {model: self.statistic(values_of(here, score)) for model, here in by_value(rows, "model").items()}
        chance = values_of(rows, f"{score}_chance") if "chance" in self.colours else []
        return found | ({"chance": chance[0]} if chance else {})
