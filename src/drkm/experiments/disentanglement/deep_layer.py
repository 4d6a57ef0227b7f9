"""Our own: what the deep layer adds when the number of components is the same."""

from __future__ import annotations

from collections.abc import Sequence

from drkm.experiments.disentanglement._charts import Cell, Series, box_panels
from drkm.experiments.disentanglement._sweep import (
    DATASET_NAMES,
    FAMILY_NAMES,
    METRIC_NAMES,
    Row,
    Sizes,
    by_layers,
    chosen,
    label,
    runs_at_one_n,
    scored_rows,
    sizes_of,
)
from drkm.experiments.disentanglement._tables import score_table
from drkm.experiments.disentanglement._verdicts import SCORE_NAMES, on_most_datasets
from drkm.experiments.section import Claim, Figure, Section
from drkm.runs.configuration import Configuration, Results

TITLE = "What the deep layer adds at equal components"
#: ten components in all, in one, two and three layers
STACKS = ((10,), (5, 5), (4, 3, 3))
FAMILIES = ("paper", "drkm")
SCORES = ("irs_above", "mig", "sap")


def configurations(scale: str) -> list[Configuration]:
    """Return the runs of this experiment."""
    sizes = sizes_of(scale)
    return runs_at_one_n(sizes, sizes.start_points, STACKS)


def section(results: Results, scale: str) -> Section:
    """Return tables, box plots and claims."""
    sizes = sizes_of(scale)
    rows = scored_rows(results, configurations(scale))
    text = (
        f"Ten components in all, in one layer (10), two (5, 5) or three (4, 3, 3), N = {sizes.start_points}, all ten "
        "codes scored. The comparison of the paper has 10, 15 and 10 components, of which different layers are "
        "scored, so that depth and number of components change together. One layer of our defaults is kernel PCA."
    )
    return Section(
        "deep_layer",
        TITLE,
        text,
        tables=[score_table("deep-layer", "Mean ± standard deviation", rows, ("dataset", "family", "layers"))],
        figures=[_figure(rows, sizes)] if rows else [],
        claims=[
            _adds(chosen(rows, family=family), family, score, deep)
            for family in FAMILIES
            for score in SCORES
            for deep in STACKS[1:]
        ],
        settings={"N": sizes.start_points, "γ": 1, "seeds": sizes.seeds},
    )


def _figure(rows: Sequence[Row], sizes: Sizes) -> Figure:
    def draw() -> object:
        panels = {
            f"{DATASET_NAMES[dataset]}, {title}": Cell(
                metric,
                [Series.of(f, by_layers(chosen(rows, dataset=dataset, family=f), STACKS)) for f in FAMILIES],
            )
            for dataset in sizes.datasets
            for metric, title in METRIC_NAMES.items()
        }
        return box_panels(panels, "components by layer", columns=3)

    return Figure("deep-layer", "Scores of ten components in one, two and three layers.", draw)


def _adds(rows: Sequence[Row], family: str, score: str, deep: Sequence[int]) -> Claim:
    text = f"{label(deep)} is better than one layer of ten in {SCORE_NAMES[score]} ({FAMILY_NAMES[family]})."
    return on_most_datasets(text, chosen(rows, layers=deep), chosen(rows, layers=STACKS[0]), score)
