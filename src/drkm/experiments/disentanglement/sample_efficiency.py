"""Our own: the number of training images at which the β-VAE catches up, if it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drkm.experiments.disentanglement._charts import Cell, Series, line_grid
from drkm.experiments.disentanglement._sweep import (
    BETA,
    DATASET_NAMES,
    METRIC_NAMES,
    TWO_LAYERS,
    Row,
    Sizes,
    beta_vae_run,
    by_points,
    chosen,
    drkm_runs,
    scored_rows,
    sizes_of,
    values_of,
)
from drkm.experiments.disentanglement._tables import score_table
from drkm.experiments.disentanglement._verdicts import SCORE_NAMES, on_most_datasets
from drkm.experiments.section import Claim, Figure, Section, Table, Verdict
from drkm.runs.configuration import Configuration, Results

TITLE = "Sample efficiency"
FAMILIES = ("drkm", "beta-vae")
SCORES = ("irs_above", "mig", "sap")


def configurations(scale: str) -> list[Configuration]:
    """Return the runs of this experiment."""
    sizes = sizes_of(scale)
    rivals = [
        beta_vae_run(sizes, dataset, n, seed)
        for dataset in sizes.datasets
        for n in sizes.points
        for seed in range(sizes.seeds)
    ]
    return drkm_runs(sizes, TWO_LAYERS) + rivals


def section(results: Results, scale: str) -> Section:
    """Return tables, line charts and claims."""
    sizes = sizes_of(scale)
    rows = scored_rows(results, configurations(scale))
    text = (
        f"Our defaults, s = (10, 5), against the β-VAE with β = {BETA:g}, on N = {', '.join(map(str, sizes.points))} "
        "training images. The β-VAE has caught up at the smallest N from which on its mean score is not below ours any "
        "more. The β-VAE stops by held-out images"
        + (f" or after {sizes.max_steps} steps, which is early." if sizes.max_steps else ".")
    )
    return Section(
        "sample_efficiency",
        TITLE,
        text,
        tables=[
            Table("catching-up", "N at which the β-VAE catches up", catching_up(rows)),
            score_table("sample-efficiency", "Mean ± standard deviation", rows, ("dataset", "family", "n")),
        ],
        figures=[_figure(rows, sizes)] if rows else [],
        claims=[claim for score in SCORES for claim in claims(rows, score)],
        settings={"N": list(sizes.points), "β": BETA, "seeds": sizes.seeds},
    )


def _figure(rows: Sequence[Row], sizes: Sizes) -> Figure:
    def draw() -> object:
        cells = {
            (title, DATASET_NAMES[dataset]): Cell(
                metric,
                [Series.of(f, by_points(chosen(rows, dataset=dataset, family=f))) for f in FAMILIES],
            )
            for metric, title in METRIC_NAMES.items()
            for dataset in sizes.datasets
        }
        return line_grid(cells, "training images N")

    caption = "Mean score by number of training images, band of one standard error, chance dotted."
    return Figure("sample-efficiency", caption, draw)


def catching_up(rows: Sequence[Row]) -> list[Row]:
    """Return for every dataset and score the smallest N from which on the mean of the β-VAE is not below ours."""
    out = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        line: Row = {"dataset": DATASET_NAMES[dataset]}
        for score in SCORES:
            ahead = _rival_ahead(chosen(rows, dataset=dataset), score)
            points = list(ahead)
            from_there = [n for i, n in enumerate(points) if all(ahead[later] for later in points[i:])]
            line[SCORE_NAMES[score]] = (
                "" if not points else f"N = {from_there[0]}" if from_there else f"not by N = {points[-1]}"
            )
        out.append(line)
    return out


def _rival_ahead(rows: Sequence[Row], score: str) -> dict[int, bool]:
    ours, theirs = (by_points(chosen(rows, family=family)) for family in FAMILIES)
    pairs = {n: (values_of(ours[n], score), values_of(theirs[n], score)) for n in ours if n in theirs}
    return {n: bool(np.mean(b) >= np.mean(a)) for n, (a, b) in pairs.items() if a and b}


def claims(rows: Sequence[Row], score: str) -> list[Claim]:
    """Return whether ours is ahead at the smallest N and behind at the largest."""
    points = sorted({row["n"] for row in rows})
    if not points:
        text = f"With few images our defaults are ahead of the β-VAE in {SCORE_NAMES[score]}."
        return [Claim(text, "", "no runs", Verdict.UNDECIDED, "No runs.")]
    first, last = points[0], points[-1]
    few = f"With {first} images our defaults are ahead of the β-VAE in {SCORE_NAMES[score]}."
    many = f"With {last} images the β-VAE has overtaken our defaults in {SCORE_NAMES[score]}."
    ours, theirs = (chosen(rows, family=family) for family in FAMILIES)
    return [
        on_most_datasets(few, chosen(ours, n=first), chosen(theirs, n=first), score),
        on_most_datasets(many, chosen(theirs, n=last), chosen(ours, n=last), score),
    ]
