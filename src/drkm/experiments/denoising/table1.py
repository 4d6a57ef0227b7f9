"""Table 1: denoising four plane curves at three noise levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from drkm.experiments.denoising import _problems as problems
from drkm.experiments.denoising._problems import BOUND, DATASETS, NOISES, PUBLISHED, SEED, SIZES, CurveSizes
from drkm.experiments.denoising._table1_claims import AS_PUBLISHED, CELLS, judge
from drkm.experiments.experiment import MEASURED_ERROR, Row, SimpleExperiment
from drkm.experiments.section import Claim, Figure, ResultTable
from drkm.experiments.study.rows import chosen, grouped, pivoted
from drkm.plotting import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, style
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import Task
from drkm.validation import parts

TEXT = """\
Four plane curves at three noise levels. A model sees the noisy points alone and gives back a point for each of them;
errors are those of the training points. The paper compares its deep model, s = (2, 1), with kernel PCA with three
components by the ratio of kernel PCA's error to its own: above 1 it denoises better. Beside both stand the
noisy points themselves, mean shift, scikit-learn's kernel PCA, one and two layers whose components and bandwidths
were selected without clean points (of two layers, the first denoises), and the Bayes posterior mean under the true
density, which nothing can beat.

The paper does not say how its error is defined, how its bandwidths were selected or how often its iteration was
repeated. Its two models take the bandwidths of least error on validation points whose clean positions are known,
the kindest reading; the ratios are shown for every definition tried."""
RATIOS = """\
Kernel PCA's error over that of the deep model, as published and here: mean squared error to the clean point, β as
published, iterated to convergence."""
GRID = """\
Kernel PCA's error over that of the deep model, in brackets as published: above 1 the deep model denoises better."""
ERRORS = """\
Mean squared error to the clean point, relative to that of the Bayes posterior mean. What is not below the noisy points
does not denoise."""
DEFINITIONS = """\
In how many cells the ratio is above 1, and at or above the published one, by definition of the error; and the factor
by which it is off in the median cell."""
CAPTION = """\
Error relative to that of the Bayes posterior mean (black line), by curve and noise level. Numbers at the upper edge are
values beyond it."""
DISTANCES = "Mean distance of the denoised points to the curve."
ALL_RATIOS = "The ratio in every cell, by definition of the error."
#: result of the run of one cell
RESULT = parts.group(
    {
        "estimated noise": MEASURED_ERROR,
        "errors": parts.entries(
            "method", problems.ORDER, {"chosen": parts.text, "mse": MEASURED_ERROR, "distance": MEASURED_ERROR}
        ),
        "protocol": parts.several(
            parts.group(
                {
                    **dict.fromkeys(("β", "measure", "kernel PCA σ²", "deep σ²"), parts.text),
                    **dict.fromkeys(("kernel PCA", "deep"), MEASURED_ERROR),
                    "steps": lambda name, value: (parts.text if isinstance(value, str) else parts.count())(name, value),
                }
            )
        ),
    },
    others=True,
)
#: columns of the table of ratios
COLUMNS = {
    **{name: name for name in ("curve", "σ_n", "published", "ours")},
    "kernel PCA, MSE": "kernel PCA",
    "deep model, MSE": "deep",
    "kernel PCA, σ²": "kernel PCA σ²",
    "deep model, σ²": "deep σ²",
}
#: colour and marker of each method in the figure
LOOKS = {
    problems.NOISY: (GREY, "_"),
    problems.MEAN_SHIFT: (PURPLE, "v"),
    problems.RIVAL: (ORANGE, "^"),
    problems.PAPER_KPCA: (SKY, "X"),
    problems.PAPER_DEEP: (GREEN, "P"),
    problems.ONE_LAYER: (VERMILION, "s"),
    problems.TWO_LAYERS: (BLUE, "o"),
}
#: upper end of its axis; larger values are drawn at its edge and labelled with the number
TOP = 3.0


def _runs(sizes: CurveSizes) -> list[Configuration]:
    shared = {"sizes": asdict(sizes)}
    return [Configuration("denoise-cell", {"curve": curve, "noise": noise, **shared}, SEED) for curve, noise in CELLS]


def _ratios(cells: list[Row]) -> list[Row]:
    """Return the ratios of the errors of the paper's two models, one row per cell and definition of the error."""
    return [
        {
            **_place(cell),
            **entry,
            "published": PUBLISHED[cell["noise"]][cell["curve"]],
            "ours": entry["kernel PCA"] / entry["deep"],
        }
        for cell in cells
        for entry in cell["protocol"]
    ]


def _errors(cells: list[Row]) -> list[Row]:
    """Return the errors of all methods, one row per cell and method."""
    return [
        {**_place(cell), **entry, "Bayes MSE": bound, "relative": entry["mse"] / bound}
        for cell in cells
        for bound in [one["mse"] for one in cell["errors"] if one["method"] == BOUND]
        for entry in cell["errors"]
    ]


def _place(cell: Row) -> Row:
    named = {"curve": DATASETS[cell["curve"]], "σ_n": cell["noise"], "estimated σ_n": cell.get("estimated noise")}
    return {"cell": (cell["curve"], cell["noise"]), **named}


def _tables(cells: list[Row], sizes: CurveSizes) -> list[ResultTable]:
    ratios, errors = _ratios(cells), _errors(cells)
    judged, others = chosen(ratios, **AS_PUBLISHED), chosen(errors, method=lambda method: method != BOUND)
    grid = pivoted(
        [{**row, "both": "{ours:.2f} ({published:.2f})".format(**row)} for row in judged],
        ["curve"],
        "σ_n = {σ_n}",
        "both",
    )
    levels = {f"σ_n = {noise}": None for noise in NOISES}
    return [
        ResultTable("table1", GRID, [{"curve": row["curve"], **levels, **row} for row in grid], in_front=True),
        ResultTable("ratios", RATIOS, [{title: row[name] for title, name in COLUMNS.items()} for row in judged]),
        ResultTable("errors", ERRORS, pivoted(others, ["curve", "σ_n", "Bayes MSE"], "{method}", "relative")),
        ResultTable("distances", DISTANCES, pivoted(errors, ["curve", "σ_n"], "{method}", "distance")),
        ResultTable(
            "chosen",
            "What was chosen in each cell, and the estimated noise level.",
            pivoted(chosen(others, chosen=bool), ["curve", "σ_n", "estimated σ_n"], "{method}", "chosen"),
        ),
        ResultTable("definitions", DEFINITIONS, _definitions(ratios)),
        ResultTable("all-ratios", ALL_RATIOS, pivoted(ratios, list(AS_PUBLISHED), "{curve}, {σ_n}", "ours")),
    ]


def _definitions(ratios: list[Row]) -> list[Row]:
    """Return the number of published ratios that are reached, for each definition of the error."""
    return [
        {
            **dict(zip(AS_PUBLISHED, key, strict=True)),
            "cells": len(among),
            "above 1": sum(row["ours"] > 1 for row in among),
            "at or above published": sum(row["ours"] >= row["published"] for row in among),
            "off by a factor of": float(
                np.exp(np.median([abs(np.log(row["ours"] / row["published"])) for row in among]))
            ),
        }
        for key, among in grouped(ratios, *AS_PUBLISHED).items()
    ]


def _draw(cells: list[Row]) -> Any:
    """Return the figure: error relative to the Bayes posterior mean, one panel per dataset."""
    errors = _errors(cells)
    with style() as plt:
        figure, panels = plt.subplots(1, len(DATASETS), figsize=(9, 3.4), sharey=True, layout="constrained")
        for axes, title in zip(panels, DATASETS.values(), strict=True):
            _panel(axes, chosen(errors, curve=title))
            axes.set_title(title, pad=26)
        panels[0].set_ylabel("MSE to clean / MSE of Bayes")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _panel(axes: Any, errors: list[Row]) -> None:
    axes.axhline(1, color="black", linewidth=0.8, label=BOUND)
    above = dict.fromkeys(NOISES, 0)
    for k, (method, (colour, marker)) in enumerate(LOOKS.items()):
        own = chosen(errors, method=method)
        x = [NOISES.index(row["σ_n"]) + 0.09 * (k - 3) for row in own]
        y = [row["relative"] for row in own]
        size = 60 if marker == "_" else 26
        axes.scatter(x, np.minimum(y, TOP), color=colour, marker=marker, s=size, label=method, zorder=3, clip_on=False)
        for place, row in zip(x, own, strict=True):
            if row["relative"] > TOP:
                # Stack the numbers of one noise level, which would overlap.
                lift, look = (0, 6 + 9 * above[row["σ_n"]]), {"ha": "center", "fontsize": 7, "color": colour}
                axes.annotate(f"{row['relative']:.3g}", (place, TOP), lift, textcoords="offset points", **look)
                above[row["σ_n"]] += 1
    axes.set_xticks(range(len(NOISES)), [str(noise) for noise in NOISES])
    axes.set_xlim(-0.45, len(NOISES) - 0.55)
    axes.set_ylim(0.9, TOP)
    axes.set_xlabel("noise $\\sigma_n$")


def _claims(cells: list[Row], sizes: CurveSizes) -> Iterator[Claim]:
    return judge(_ratios(cells), _errors(cells), sizes.n_train)


EXPERIMENT = SimpleExperiment(
    name="table1",
    title="Table 1: denoising four plane curves",
    place=1,
    tasks={"denoise-cell": Task(f"{__package__}._table1_cell:run_cell", revision=4, result=RESULT)},
    text=lambda sizes: TEXT,
    scales=SIZES,
    settable=problems.SETTABLE,
    runs=_runs,
    tables=_tables,
    figures=lambda cells, sizes: [Figure("errors", CAPTION, lambda: _draw(cells))],
    claims=_claims,
    settings={"training points": "n_train", "validation points": "n_validation", "seed of the data": SEED},
)
