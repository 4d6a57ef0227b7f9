"""Our own: how far components come back when the training images are drawn again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drkm.experiments.disentanglement._charts import FAMILY_COLOURS, dot_grid
from drkm.experiments.disentanglement._sweep import BETA, DATASET_NAMES, GAMMA, TWO_LAYERS, Row, Sizes, chosen, sizes_of
from drkm.experiments.disentanglement._verdicts import mean_and_spread, on_most_datasets
from drkm.experiments.section import Claim, Figure, Section, Table
from drkm.plotting import GREEN, GREY
from drkm.runs.configuration import Configuration, Results

TITLE = "Stability of components"
#: unseen images on which fits are compared
COMMON = 500
OURS, SHALLOW, PAPER, RIVAL = "drkm defaults", "kernel PCA", "as published", "β-VAE"
COLOURS = {
    PAPER: FAMILY_COLOURS["paper"],
    OURS: FAMILY_COLOURS["drkm"],
    SHALLOW: GREEN,
    RIVAL: FAMILY_COLOURS["beta-vae"],
    "chance": GREY,
}


def configurations(scale: str) -> list[Configuration]:
    """Return the runs of this experiment."""
    return [run for _, run in _named_runs(sizes_of(scale))]


def _named_runs(sizes: Sizes) -> list[tuple[str, Configuration]]:
    shared = {"n": sizes.start_points, "evaluation": COMMON, "resamples": sizes.resamples}
    return [
        (name, Configuration("stability", {"dataset": dataset, **shared, **model}, seed))
        for dataset in sizes.datasets
        for name, model in _models(sizes).items()
        for seed in range(sizes.seeds)
    ]


def _models(sizes: Sizes) -> dict[str, dict[str, object]]:
    models: dict[str, dict[str, object]] = {
        PAPER: {"family": "paper", "layers": list(TWO_LAYERS), "gamma": GAMMA},
        OURS: {"family": "drkm", "layers": list(TWO_LAYERS)},
        SHALLOW: {"family": "drkm", "layers": [TWO_LAYERS[0]]},
    }
    # Resamples of a β-VAE cost minutes without a GPU, which the smallest scale does not count on.
    return models if sizes.max_steps else {**models, RIVAL: {"family": "beta-vae", "beta": BETA}}


def section(results: Results, scale: str) -> Section:
    """Return tables, a figure and claims."""
    sizes = sizes_of(scale)
    rows = layer_rows(results, sizes)
    text = (
        f"Each model is trained on {sizes.resamples} bootstrap resamples of the same {sizes.start_points} images, "
        f"and all fits encode the same {COMMON} unseen images. Shared variance is the mean squared cosine of the "
        "principal angles between the spans of the centred codes of a layer, over pairs of resamples: 1 for the "
        "same subspace, chance is what random subspaces share. Agreement compares single codes: 1 where every code "
        "has one partner and no second one (unsupervised disentanglement ranking with rank correlations)."
    )
    return Section(
        "stability",
        TITLE,
        text,
        tables=[Table("stability", "Means ± standard deviations over training draws", _table(rows))],
        figures=[_figure(rows, sizes)] if rows else [],
        claims=claims(rows),
        settings={"N": sizes.start_points, "resamples": sizes.resamples, "common images": COMMON, "seeds": sizes.seeds},
    )


def layer_rows(results: Results, sizes: Sizes) -> list[Row]:
    """Return one row for every layer of every run."""
    columns = {"shared": "shared", "chance": "shared_chance", "angle": "angle", "agreement": "agreement"}
    return [
        {"dataset": run.parameters["dataset"], "model": name, "layer": layer + 1, "seed": run.seed}
        | {column: results[run][key][layer] for column, key in columns.items()}
        for name, run in _named_runs(sizes)
        if run in results
        for layer in range(len(results[run]["shared"]))
    ]


def _table(rows: Sequence[Row]) -> list[Row]:
    out = []
    for dataset, model, layer in dict.fromkeys((row["dataset"], row["model"], row["layer"]) for row in rows):
        here = chosen(rows, dataset=dataset, model=model, layer=layer)
        out.append(
            {
                "dataset": DATASET_NAMES[dataset],
                "model": model,
                "layer": layer,
                "shared variance": mean_and_spread([row["shared"] for row in here]),
                "chance": round(here[0]["chance"], 3),
                "largest angle, degrees": mean_and_spread([row["angle"] for row in here], 1),
                "agreement of codes": mean_and_spread([row["agreement"] for row in here]),
            }
        )
    return out


def _figure(rows: Sequence[Row], sizes: Sizes) -> Figure:
    def draw() -> object:
        cells = {}
        for key, title in (("shared", "shared variance"), ("agreement", "agreement of codes")):
            for dataset in sizes.datasets:
                labels: dict[str, dict[str, float]] = {"layer 1": {}, "layer 2": {}}
                for layer, label in enumerate(labels, 1):
                    here = chosen(rows, dataset=dataset, layer=layer)
                    for model in dict.fromkeys(row["model"] for row in here):
                        labels[label][model] = float(np.mean([row[key] for row in chosen(here, model=model)]))
                    if key == "shared" and here:
                        labels[label]["chance"] = here[0]["chance"]
                cells[title, DATASET_NAMES[dataset]] = labels
        return dot_grid(cells, COLOURS, "mean over draws")

    return Figure("stability", "How far fits to resamples of the same images share subspaces and codes.", draw)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return our own questions about stability, answered."""
    first = chosen(rows, layer=1)
    ours = chosen(first, model=OURS)
    out = [
        on_most_datasets(
            f"On resampled images layer 1 of {OURS} comes back more fully than the codes of the model {other}.",
            ours,
            chosen(first, model=other),
            "shared",
        )
        for other in (SHALLOW, RIVAL, PAPER)
    ]
    deep = chosen(rows, model=OURS, layer=2)
    return [*out, on_most_datasets(f"Layer 1 of {OURS} is more stable than layer 2.", ours, deep, "shared")]
