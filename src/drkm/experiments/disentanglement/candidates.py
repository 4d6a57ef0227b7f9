"""The choice of bandwidths and axes: every candidate on dSprites and SmallNORB, by unsupervised criteria."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from drkm.experiments.experiment import MEASURED, Row
from drkm.experiments.section import ResultTable
from drkm.experiments.study import Study, StudySizes, named_models, task
from drkm.experiments.study.rows import chosen, grouped
from drkm.experiments.study.scales import DATASET_NAMES, ONE_LAYER, TWO_LAYERS
from drkm.validation import parts

#: choices for the axes of a layer
AXES = ("ritz", "varimax", "ica")
KPCA = "kernel PCA"
#: model → its layers and options: the default second layer, and one with less influence on the first
MODELS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    KPCA: (ONE_LAYER, {}),
    "kernel PCA, centred": (ONE_LAYER, {"center": True}),
    "two layers, η₂ = 1": (TWO_LAYERS, {}),
    "two layers, η₂ = 10": (TWO_LAYERS, {"deep_eta": 10.0}),
}
#: result of a run for each choice of axes: the scores of every draw
SCORES = ("irs", "irs_chance", "mig", "mig_chance")


def _of_draws(name: str, value: Any) -> None:
    parts.columns(SCORES, parts.nullable(MEASURED))(name, value)
    parts.group({"agreement": parts.nullable(MEASURED)}, others=True)(name, value)


def _axes(row: Row) -> Iterator[Row]:
    """Yield one row per choice of axes, with the scores of all draws."""
    for axes in AXES:
        found = {name: np.array(row[axes][name], dtype=float) for name in (*SCORES, "agreement")}
        above = found["irs"] - found["irs_chance"]
        yield {"dataset": row["dataset"], "width": row["width"], "axes": axes, **found, "irs_above": above}


def _tables(rows: list[Row], sizes: StudySizes) -> list[ResultTable]:
    lines = []
    for (model, width, axes), here in grouped(rows, "model", "width", "axes").items():
        line: Row = {"model": model, "σ²₁ / median": width, "axes": axes}
        ahead = draws = 0
        for row in here:
            name = DATASET_NAMES[row["dataset"]]
            line[f"{name} IRS above chance"] = float(np.mean(row["irs_above"]))
            line[f"{name} MIG"] = float(np.mean(row["mig"]))
            line[f"{name} agreement"] = float(row["agreement"])
            for rival in chosen(rows, model=KPCA, width=width, axes="ritz", dataset=row["dataset"]):
                better = [row[score] > rival[score] for score in ("irs_above", "mig")]
                ahead, draws = ahead + int(np.sum(np.all(better, axis=0))), draws + len(row["mig"])
        lines.append({**line, "both ahead": f"{ahead} of {draws}"})
    caption = "Means over training draws, and draws ahead of kernel PCA in both scores"
    return [ResultTable("candidates", caption, lines)]


EXPERIMENT = Study(
    name="candidates",
    title="The choice of bandwidths and axes",
    place=17,
    tasks={"candidate": task("candidate", parts.group(dict.fromkeys(AXES, _of_draws)))},
    text=lambda sizes: (
        f"Candidates for the rule of the study of Cars3D, on {sizes.start_points} training and {sizes.evaluation} "
        f"unseen images of {' and '.join(DATASET_NAMES[name] for name in sizes.selection_datasets)}: σ² of layer 1 as "
        "a multiple of the median rule, three choices of axes, the default second layer and one that pulls at the "
        "first with a tenth of the weight. Agreement sees no factors: the mean, over pairs of training draws, of how "
        "well each code of one fit is matched by one code of the other on common images (unsupervised disentanglement "
        "ranking with rank correlations). Ahead counts the draws on which IRS above chance and MIG are both better "
        "than those of kernel PCA with the same kernel and Ritz axes."
    ),
    groups=named_models(
        {name: ("drkm", *model) for name, model in MODELS.items()},
        at="start_points",
        hyperparameter="all",
        seeds=1,
        datasets="selection_datasets",
        settings={"draws": "seeds"},
        task="candidate",
        eta=None,
        rows=_axes,
    ),
    tables=_tables,
    settings={"N": "start_points", "unseen images": "evaluation", "draws": "seeds", "σ²₁ / median": "widths"},
)
