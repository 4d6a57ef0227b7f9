"""The influence of γ at each number of training images."""

from __future__ import annotations

from collections.abc import Sequence

from drkm.experiments.disentanglement._charts import Cell, Series, line_grid
from drkm.experiments.disentanglement._sweep import (
    DATASET_NAMES,
    METRIC_NAMES,
    TWO_LAYERS,
    Row,
    Sizes,
    by_points,
    chosen,
    drkm_runs,
    paper_runs,
    scored_rows,
    sizes_of,
)
from drkm.experiments.disentanglement._tables import score_table
from drkm.experiments.disentanglement._verdicts import SCORE_NAMES, alike, majority
from drkm.experiments.disentanglement.hyperparameters import STEADY, groups_of, widest
from drkm.experiments.section import Claim, Figure, Section, Verdict
from drkm.plotting import COLOURS
from drkm.runs.configuration import Configuration, Results

TITLE = "The influence of γ by number of training images"


def configurations(scale: str) -> list[Configuration]:
    """Return the runs of this experiment."""
    sizes = sizes_of(scale)
    return paper_runs(sizes, TWO_LAYERS) + drkm_runs(sizes, TWO_LAYERS)


def section(results: Results, scale: str) -> Section:
    """Return tables, line charts and claims."""
    sizes = sizes_of(scale)
    rows = scored_rows(results, configurations(scale))
    text = (
        "Two layers, s = (10, 5), as published, one line for each N; bands are over seeds. With our defaults γ changes "
        "nothing, because on the manifold it only multiplies the energy: the same run stands at every γ, on the right."
    )
    return Section(
        "gamma",
        TITLE,
        text,
        tables=[score_table("gamma", "Mean ± standard deviation", rows, ("dataset", "family", "n", "gamma"))],
        figures=[_figure(chosen(rows, dataset=d), sizes, d) for d in sizes.datasets if chosen(rows, dataset=d)],
        claims=[_horizontal(rows, score) for score in ("irs", "irs_above", "mig", "sap")],
        settings={"N": list(sizes.points), "γ": list(sizes.gammas), "seeds": sizes.seeds},
    )


def _figure(rows: Sequence[Row], sizes: Sizes, dataset: str) -> Figure:
    def draw() -> object:
        cells = {}
        for metric, title in METRIC_NAMES.items():
            published, ours = [], []
            for colour, n in zip(COLOURS, sizes.points, strict=False):
                here = chosen(rows, n=n)
                published.append(Series(f"N = {n}", colour, groups_of(here, "paper")))
                same = dict.fromkeys(sizes.gammas, chosen(here, family="drkm"))
                ours.append(Series(f"N = {n}", colour, same))
            cells[title, "as published"] = Cell(metric, published)
            cells[title, "drkm defaults (any γ)"] = Cell(metric, ours)
        return line_grid(cells, "γ")

    caption = f"{DATASET_NAMES[dataset]}: mean score by γ and N, band of one standard error, chance dotted."
    return Figure(f"gamma-{dataset}", caption, draw)


def _horizontal(rows: Sequence[Row], score: str) -> Claim:
    judged = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for here in by_points(chosen(rows, dataset=dataset, family="paper")).values():
            found = widest(list(groups_of(here, "paper").values()), score)
            if found is not None:
                judged.append(alike(found, STEADY))
    flat, steep = judged.count(Verdict.HELD), judged.count(Verdict.FAILED)
    return Claim(
        f"For most datasets and N, {SCORE_NAMES[score]} does not change with γ (as published).",
        "most lines are roughly horizontal" if score == "irs" else "",
        f"{flat} of {len(judged)} lines horizontal, {steep} not, {len(judged) - flat - steep} too uncertain",
        majority(flat, steep, len(judged)),
        f"Horizontal: the 95 % interval of highest less lowest mean over γ is within ±{STEADY}; not: beyond it. Holds "
        "or fails where more than half of the lines are so. The lines of IRS are drawn with their chance level.",
    )
