"""Our own experiment: how far components are recovered on another draw of the training images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drkm.experiments.experiment import MEASURED, Row
from drkm.experiments.study import Study, StudySizes, Table, charts, claims, families, tables, task
from drkm.experiments.study.scales import FAMILY_NAMES
from drkm.plotting import GREY
from drkm.validation import parts

#: unseen images on which fits are compared
COMMON = 500
PAPER, OURS, SHALLOW, _, RIVAL = FAMILY_NAMES.values()
COLOURS = {**{FAMILY_NAMES[name]: colour for name, colour in charts.FAMILY_COLOURS.items()}, "chance": GREY}
#: result of a run: lists with one entry per layer
RESULTS = ("shared", "shared_chance", "angle", "agreement")


def _layers(row: Row) -> Iterator[Row]:
    """Yield one row per layer of a run."""
    for layer in range(len(row["shared"])):
        found = {name: row[name][layer] for name in RESULTS}
        yield {"dataset": row["dataset"], "layer": layer + 1, "seed": row["seed"], **found}


def _cells(rows: list[Row]) -> Row:
    return {
        **tables.spreads(rows, {"shared variance": "shared"}),
        "chance": round(rows[0]["shared_chance"], 3),
        **tables.spreads(rows, {"largest angle, degrees": "angle"}, 1),
        **tables.spreads(rows, {"agreement of codes": "agreement"}),
    }


def _claims(rows: list[Row], sizes: StudySizes) -> Iterator[claims.Claim]:
    fully = f"On resampled images layer 1 of {OURS} is recovered more fully than the codes of the model"
    asked = [(f"{fully} {other}.", {"model": other, "layer": 1}) for other in (SHALLOW, RIVAL, PAPER)]
    asked.append((f"Layer 1 of {OURS} is more stable than layer 2.", {"model": OURS, "layer": 2}))
    for text, other in asked:
        found = claims.on_most_datasets(rows, {"model": OURS, "layer": 1}, other, "shared")
        yield claims.claim(text, rows, found)


EXPERIMENT = Study(
    name="stability",
    title="Stability of components",
    place=15,
    tasks={"stability": task("stability", parts.columns(RESULTS, MEASURED))},
    text=lambda sizes: (
        f"Each model is trained on {sizes.resamples} bootstrap resamples of the same {sizes.start_points} images, "
        f"and all fits encode the same {COMMON} unseen images. Shared variance is the mean squared cosine of the "
        "principal angles between the spans of the centred codes of a layer, over pairs of resamples: 1 for the "
        "same subspace, chance is what random subspaces share. Agreement compares single codes: 1 where every code "
        "has one partner and no second one (unsupervised disentanglement ranking with rank correlations)."
    ),
    groups=families(
        *FAMILY_NAMES,
        at="start_points",
        settings={"resamples": "resamples", "evaluation": COMMON},
        task="stability",
        # Without a GPU, resamples of a β-VAE take minutes: too long for the smallest scale.
        long=True,
        rows=_layers,
    ),
    tables=Table(
        name="stability",
        by=("dataset", "model", "layer"),
        caption="Means ± standard deviations over training draws",
        cells=_cells,
    ),
    figures=lambda rows, sizes: charts.dots(
        "stability",
        "How far fits to resamples of the same images share subspaces and codes.",
        rows,
        scores={"shared": "shared variance", "agreement": "agreement of codes"},
        along="layer",
        labels={1: "layer 1", 2: "layer 2"},
        colours=COLOURS,
        statistic=lambda values: float(np.mean(values)),
        ylabel="mean over draws",
    ),
    claims=_claims,
    settings={"N": "start_points", "resamples": "resamples", "common images": COMMON, "seeds": "seeds"},
)
