"""Figures 1 to 3 as data: curves denoised by the paper's model and others, panel by panel, judged on one draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from drkm.datasets.toy2d import CURVES
from drkm.experiments.denoising._problems import BOUND, DATASETS, NOISY, SEED, SETTABLE, SIZES, TWO_LAYERS, CurveSizes
from drkm.experiments.experiment import MEASURED, MEASURED_ERROR, Row, SimpleExperiment
from drkm.experiments.section import Claim, Figure, ResultTable
from drkm.experiments.study.rows import chosen
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import Task
from drkm.validation import parts

NOISE = 0.1
ALL = "all three components"
COMPONENTS = {
    "layer 1, component 1": [(1, 0)],
    "layer 1, component 2": [(1, 1)],
    "layer 2, component 1": [(2, 0)],
    ALL: None,
}
#: result of the run of one curve
RESULT = parts.group(
    {
        "σ²": MEASURED_ERROR,
        "steps": parts.nullable(parts.count()),
        "selected": parts.several(parts.count()),
        "panels": parts.entries(
            "name",
            (NOISY, *COMPONENTS, TWO_LAYERS, BOUND),
            {
                **dict.fromkeys(("mse", "distance", "gap"), MEASURED_ERROR),
                "points": parts.several(parts.each([MEASURED, MEASURED]), least=1),
            },
        ),
    },
    others=True,
)
TASKS = {"denoise-panels": Task(f"{__package__}._panels_run:run_panels", revision=4, result=RESULT)}
#: width over height of a panel
SHAPES = {"square": 0.95, "half_circle": 1.43, "square_spiral": 1.7, "squares_spiral_ring": 0.94}
WIDE = 3

Panels = Mapping[str, Row]


def panel_figure(
    name: str,
    title: str,
    place: int,
    text: str,
    caption: str,
    panels: Mapping[str, str],
    curves: Sequence[str],
    claims: Callable[[str, Panels], Iterable[Claim]],
) -> SimpleExperiment:
    """Return the experiment of a figure.

    Parameters
    ----------
    name, title, place, text, caption
        Of the experiment and its figure.
    panels : mapping
        Names of the panels with their titles, which may contain {name}, {selected} and the errors {mse}, {distance}
        and {gap}.
    curves : sequence of str
    claims : (curve, panels) → iterable of Claim
        Claims about the panels of a curve; without its run, `panels` is empty.
    """
    shown = {NOISY, *panels, BOUND}
    return SimpleExperiment(
        name=name,
        title=title,
        place=place,
        tasks=TASKS,
        text=lambda sizes: text,
        scales=SIZES,
        settable=SETTABLE,
        runs=lambda sizes: [_run(curve, sizes) for curve in curves],
        tables=lambda found, sizes: [ResultTable("errors", "Errors of the training points.", _errors(found, shown))],
        figures=lambda found, sizes: [Figure(name, caption, lambda: draw(found, panels))],
        claims=lambda found, sizes: [claim for curve in curves for claim in claims(curve, _of(curve, found))],
        settings={
            "training points": "n_train",
            "noise σ_n": NOISE,
            "seed of the data": SEED,
            **{f"paper's model, {DATASETS[curve]}": partial(_paper_settings, curve) for curve in curves},
        },
    )


def _run(curve: str, sizes: CurveSizes) -> Configuration:
    return Configuration("denoise-panels", {"curve": curve, "noise": NOISE, "sizes": asdict(sizes)}, SEED)


def _of(curve: str, found: list[Row]) -> Panels:
    return next(map(by_name, chosen(found, curve=curve)), {})


def by_name(result: Row) -> dict[str, Row]:
    """Return the panels of a run by their name."""
    return {panel["name"]: panel for panel in result["panels"]}


def _errors(results: list[Row], shown: set[str]) -> list[Row]:
    return [
        {
            "curve": DATASETS[result["curve"]],
            "points": panel["name"],
            "MSE to clean": panel["mse"],
            "mean distance to the curve": panel["distance"],
            "mean gap along the curve": panel["gap"],
        }
        for result in results
        for panel in result["panels"]
        if panel["name"] in shown
    ]


def _paper_settings(curve: str, found: list[Row]) -> str | None:
    for result in chosen(found, curve=curve):
        return f"σ_1² = {result['σ²']:g}, steps: {result['steps'] or 'to convergence'}"
    return None


def draw(results: list[Row], panels: Mapping[str, str]) -> Any:
    """Return the figure with the panels of each curve, three per row, and a legend below."""
    from drkm.plotting import scatter_before_after, style

    lines = [(result, list(panels)[k : k + WIDE]) for result in results for k in range(0, len(panels), WIDE)]
    heights = [WIDE / SHAPES[result["curve"]] for result, _ in lines]
    with style() as plt:
        size, shape = (9, sum(heights) + 0.3), {"height_ratios": heights, "squeeze": False}
        figure, axes = plt.subplots(len(lines), WIDE, figsize=size, layout="constrained", **shape)
        for place in axes.flat:
            place.set_axis_off()
        for line, (result, names) in zip(axes, lines, strict=True):
            found, curve = by_name(result), CURVES[result["curve"]]().quadrature(1500)[0]
            for place, name in zip(line, names, strict=False):
                noisy, points = (np.array(found[key]["points"], dtype=float) for key in (NOISY, name))
                title = panels[name].format(selected=tuple(result["selected"]), **found[name])
                scatter_before_after(place, noisy, points, title, curve)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, markerscale=3)
    return figure
