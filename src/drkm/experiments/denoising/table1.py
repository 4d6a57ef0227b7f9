"""Table 1: denoising four plane curves at three noise levels."""

from __future__ import annotations

from dataclasses import asdict

from drkm.experiments.denoising import _table1_tables as tables
from drkm.experiments.denoising._problems import DATASETS, NOISES, SEED, SIZES
from drkm.experiments.denoising._table1_claims import judge
from drkm.experiments.denoising._table1_figure import draw
from drkm.experiments.section import Figure, Section, Table
from drkm.runs.configuration import Configuration, Results

TITLE = "Table 1: denoising four plane curves"
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
ERRORS = """\
Mean squared error to the clean point, relative to that of the Bayes posterior mean. What is not below the noisy points
does not denoise."""
DEFINITIONS = """\
In how many cells the ratio is above 1, and at or above the published one, by definition of the error; and the factor
by which it is off in the median cell."""
CAPTION = """\
Error relative to that of the Bayes posterior mean (black line), by curve and noise level. Numbers at the upper edge are
values beyond it."""


def configurations(scale: str) -> list[Configuration]:
    """Return the twelve cells: a curve at a noise level each."""
    sizes = asdict(SIZES[scale])
    return [
        Configuration("denoise-cell", {"curve": dataset, "noise": noise, "sizes": sizes}, SEED)
        for noise in NOISES
        for dataset in DATASETS
    ]


def section(results: Results, scale: str) -> Section:
    """Return what the finished cells show."""
    cells = list(results.rows(configurations(scale)))
    ratios = tables.ratios(cells)
    sizes = SIZES[scale]
    shown = [
        Table("ratios", RATIOS, tables.published_and_ours(ratios)),
        Table("errors", ERRORS, tables.relative_errors(cells)),
        Table("distances", "Mean distance of the denoised points to the curve.", tables.distances(cells)),
        Table("chosen", "What was chosen in each cell, and the estimated noise level.", tables.choices(cells)),
        Table("definitions", DEFINITIONS, tables.definitions(ratios)),
        Table("all-ratios", "The ratio in every cell, by definition of the error.", tables.all_ratios(ratios)),
    ]
    return Section(
        name="table1",
        title=TITLE,
        text=TEXT,
        tables=[table for table in shown if table.rows],
        figures=[Figure("errors", CAPTION, lambda: draw(cells))] if cells else [],
        claims=judge(cells, ratios, points=sizes.n_train),
        settings={"training points": sizes.n_train, "validation points": sizes.n_validation, "seed of the data": SEED},
    )
