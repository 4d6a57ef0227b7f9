"""Our own: how far components are recovered when the training images are drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from drkm.experiments.experiment import MEASURED, Row
from drkm.experiments.section import Figure, ResultTable
from drkm.experiments.study import charts, claims, verdicts
from drkm.experiments.study.drawing import dot_grid
from drkm.experiments.study.groups import Group
from drkm.experiments.study.rows import by_value, chosen
from drkm.experiments.study.scales import DATASET_NAMES, TWO_LAYERS, StudySizes
from drkm.experiments.study.study import Study, task
from drkm.plotting import GREEN, GREY
from drkm.validation import parts

#: unseen images on which fits are compared
COMMON = 500
OURS, SHALLOW, PAPER, RIVAL = "drkm defaults", "kernel PCA", "as published", "β-VAE"
COLOURS = {
    PAPER: charts.FAMILY_COLOURS["paper"],
    OURS: charts.FAMILY_COLOURS["drkm"],
    SHALLOW: GREEN,
    RIVAL: charts.FAMILY_COLOURS["beta-vae"],
    "chance": GREY,
}
#: what a run holds: lists with one entry per layer
RESULT = parts.columns(("shared", "shared_chance", "angle", "agreement"), MEASURED)


def _layers(row: Row) -> Iterator[Row]:
    """Yield one row for every layer of a run."""
    columns = {"shared": "shared", "chance": "shared_chance", "angle": "angle", "agreement": "agreement"}
    for layer in range(len(row["shared"])):
        found = {column: row[key][layer] for column, key in columns.items()}
        yield {"dataset": row["dataset"], "layer": layer + 1, "seed": row["seed"], **found}


def _group(model: str, family: str, layers: tuple[int, ...] = TWO_LAYERS, *, long: bool = False) -> Group:
    return Group(
        family=family,
        stacks=(layers,),
        at="start_points",
        settings={"resamples": "resamples"},
        task="stability",
        evaluation=COMMON,
        long=long,
        tags={"model": model},
        rows=_layers,
    )


def _table(rows: list[Row], sizes: StudySizes) -> ResultTable:
    lines = [
        {
            "dataset": DATASET_NAMES[dataset],
            "model": model,
            "layer": layer,
            "shared variance": verdicts.mean_and_spread([row["shared"] for row in here]),
            "chance": round(here[0]["chance"], 3),
            "largest angle, degrees": verdicts.mean_and_spread([row["angle"] for row in here], 1),
            "agreement of codes": verdicts.mean_and_spread([row["agreement"] for row in here]),
        }
        for dataset in sizes.datasets
        for model, found in by_value(chosen(rows, dataset=dataset), "model").items()
        for layer, here in by_value(found, "layer").items()
    ]
    return ResultTable("stability", "Means ± standard deviations over training draws", lines)


def _figure(rows: list[Row], sizes: StudySizes) -> list[Figure]:
    def mean(here: list[Row], key: str) -> dict[str, float]:
        means = {model: float(np.mean([row[key] for row in some])) for model, some in by_value(here, "model").items()}
        return means | ({"chance": here[0]["chance"]} if key == "shared" and here else {})

    def draw() -> Any:
        cells = {
            (title, DATASET_NAMES[dataset]): {
                f"layer {layer}": mean(chosen(rows, dataset=dataset, layer=layer), key) for layer in (1, 2)
            }
            for key, title in (("shared", "shared variance"), ("agreement", "agreement of codes"))
            for dataset in sizes.datasets
        }
        return dot_grid(cells, COLOURS, "mean over draws")

    return [Figure("stability", "How far fits to resamples of the same images share subspaces and codes.", draw)]


FIRST = {"model": OURS, "layer": 1}

EXPERIMENT = Study(
    name="stability",
    title="Stability of components",
    place=15,
    tasks={"stability": task("stability", RESULT)},
    text=lambda sizes: (
        f"Each model is trained on {sizes.resamples} bootstrap resamples of the same {sizes.start_points} images, "
        f"and all fits encode the same {COMMON} unseen images. Shared variance is the mean squared cosine of the "
        "principal angles between the spans of the centred codes of a layer, over pairs of resamples: 1 for the "
        "same subspace, chance is what random subspaces share. Agreement compares single codes: 1 where every code "
        "has one partner and no second one (unsupervised disentanglement ranking with rank correlations)."
    ),
    groups=[
        _group(PAPER, "paper"),
        _group(OURS, "drkm"),
        _group(SHALLOW, "drkm", TWO_LAYERS[:1]),
        # Resamples of a β-VAE cost minutes without a GPU, which the smallest scale does not count on.
        _group(RIVAL, "beta-vae", long=True),
    ],
    tables=[_table],
    charts=[_figure],
    claims=[
        *(
            claims.Statement(
                text=f"On resampled images layer 1 of {OURS} comes back more fully than the codes of the model "
                f"{other}.",
                rule=claims.on_most_datasets(FIRST, {"model": other, "layer": 1}),
                score="shared",
            )
            for other in (SHALLOW, RIVAL, PAPER)
        ),
        claims.Statement(
            text=f"Layer 1 of {OURS} is more stable than layer 2.",
            rule=claims.on_most_datasets(FIRST, {"model": OURS, "layer": 2}),
            score="shared",
        ),
    ],
    settings={"N": "start_points", "resamples": "resamples", "common images": 500, "seeds": "seeds"},
)
