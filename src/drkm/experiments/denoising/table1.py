"""Table 1: denoising four plane curves at three noise levels."""

from __future__ import annotations

from dataclasses import asdict

from drkm.experiments.denoising import _table1_tables as tables
from drkm.experiments.denoising._problems import DATASETS, NOISES, ORDER, SEED, SETTABLE, SIZES, CurveSizes
from drkm.experiments.denoising._table1_claims import judge
from drkm.experiments.denoising._table1_figure import draw
from drkm.experiments.experiment import MEASURED_ERROR, Row, SimpleExperiment
from drkm.experiments.section import Figure, ResultTable
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
#: result of the run of one cell
RESULT = parts.group(
    {
        "estimated noise": MEASURED_ERROR,
        "errors": parts.entries(
            "method", ORDER, {"chosen": parts.text, "mse": MEASURED_ERROR, "distance": MEASURED_ERROR}
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


def _cells(sizes: CurveSizes) -> list[Configuration]:
    """Return the twelve cells, one per curve and noise level."""
    return [
        Configuration("denoise-cell", {"curve": curve, "noise": noise, "sizes": asdict(sizes)}, SEED)
        for noise in NOISES
        for curve in DATASETS
    ]


def _tables(cells: list[Row]) -> list[ResultTable]:
    ratios = tables.ratios(cells)
    return [
        ResultTable("table1", GRID, tables.grid(ratios), in_front=True),
        ResultTable("ratios", RATIOS, tables.published_and_ours(ratios)),
        ResultTable("errors", ERRORS, tables.relative_errors(cells)),
        ResultTable("distances", "Mean distance of the denoised points to the curve.", tables.distances(cells)),
        ResultTable("chosen", "What was chosen in each cell, and the estimated noise level.", tables.choices(cells)),
        ResultTable("definitions", DEFINITIONS, tables.definitions(ratios)),
        ResultTable("all-ratios", "The ratio in every cell, by definition of the error.", tables.all_ratios(ratios)),
    ]


EXPERIMENT = SimpleExperiment(
    name="table1",
    title="Table 1: denoising four plane curves",
    place=1,
    tasks={"denoise-cell": Task(f"{__package__}._table1_cell:run_cell", revision=4, result=RESULT)},
    text=TEXT,
    sizes=SIZES,
    settable=SETTABLE,
    runs=_cells,
    tables=_tables,
    figures=lambda cells: [Figure("errors", CAPTION, lambda: draw(cells))],
    claims=lambda cells, sizes: judge(cells, tables.ratios(cells), sizes.n_train),
    settings=lambda cells, sizes: {
        "training points": sizes.n_train,
        "validation points": sizes.n_validation,
        "seed of the data": SEED,
    },
)
