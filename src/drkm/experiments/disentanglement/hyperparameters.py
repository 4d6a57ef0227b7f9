"""Against the β-VAE by hyperparameter: γ of the paper's recipe, β of the β-VAE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from drkm.experiments.disentanglement._charts import BOXES, Boxes, at, family, values
from drkm.experiments.disentanglement._rows import at_common_points, by_value, chosen, values_of
from drkm.experiments.disentanglement._scales import METRIC_NAMES, StudySizes
from drkm.experiments.disentanglement._statements import (
    Case,
    Cases,
    Compared,
    Finding,
    Side,
    Statement,
    decided,
    with_and_without_chance,
)
from drkm.experiments.disentanglement._study import Study
from drkm.experiments.disentanglement._tables import scores
from drkm.experiments.disentanglement._verdicts import STEADY, alike, all_four, most, widest
from drkm.experiments.disentanglement.training_points import GROUPS
from drkm.experiments.experiment import Row

#: β from which on the paper's IRS dropped
HIGH_BETA = 5.0


def _by_gamma(rows: list[Row]) -> dict[float, list[Row]]:
    return dict(sorted(by_value(chosen(rows, family="paper"), "gamma").items()))


def _by_beta(rows: list[Row]) -> dict[float, list[Row]]:
    return dict(sorted(by_value(chosen(rows, family="beta-vae"), "beta").items()))


def _steady_in_gamma(rows: list[Row], said: Statement, sizes: StudySizes) -> Finding | None:
    groups = _by_gamma(rows)
    found = widest(groups.values(), said.score)
    if found is None:
        return None
    measured = ", ".join(f"γ = {g:g}: {np.mean(values_of(group, said.score)):.3f}" for g, group in groups.items())
    if said.score == "irs":
        measured += f"; chance {np.mean(values_of(chosen(rows, family='paper'), 'irs_chance')):.3f}"
    why = f"Highest less lowest mean over γ: {found}; holds where that is within ±{STEADY}, fails where it is beyond."
    return Finding(measured, alike(found, STEADY), why)


def _rise_with_beta(rows: list[Row], said: Statement, sizes: StudySizes) -> Finding:
    betas = list(_by_beta(rows)) or [0.0]
    largest, smallest = (
        Side(f"{name} β, {beta:g}", {"family": "beta-vae", "beta": beta})
        for name, beta in (("largest", betas[-1]), ("smallest", betas[0]))
    )
    return Compared(first=largest, second=smallest)(rows, said, sizes)


def _ranges(rows: list[Row], said: Statement) -> Iterator[Case]:
    for here in by_value(rows, "dataset").values():
        for metric in METRIC_NAMES:
            ours, theirs = (widest(groups.values(), metric) for groups in (_by_gamma(here), _by_beta(here)))
            if ours is not None and theirs is not None:
                yield Case(decided(ours.estimate < theirs.estimate))


STEADY_IN_GAMMA = Statement(
    text="On SmallNORB γ has no appreciable influence on IRS (as published){added}.",
    published="no appreciable influence",
    dataset="smallnorb",
    rule=_steady_in_gamma,
)

EXPERIMENT = Study(
    name="hyperparameters",
    title="Against the β-VAE, by hyperparameter",
    place=9,
    text=lambda sizes: (
        "The runs of the comparison by N, by γ for the recipe as published and by β for the β-VAE, all N and seeds "
        "together. With our defaults γ changes nothing: on the manifold it multiplies the whole energy and its encoder "
        "does not use it. One box stands for all γ."
        + ("" if sizes.every_gamma else " At this scale β other than 4 is run at one N only.")
    ),
    groups=GROUPS,
    tables=[scores("hyperparameters", "dataset", "family", "gamma", "beta")],
    charts=[
        Boxes(
            name="hyperparameters-{metric}",
            caption=f"{{metric}} by γ and β, over all N and seeds. {BOXES}; up to five runs each is a dot.",
            kinds=[
                family("paper", values("gamma", "γ = {}")),
                family("drkm", at("any γ")),
                family("beta-vae", values("beta", "β = {}")),
            ],
            tilt=True,
        )
    ],
    claims=[
        *with_and_without_chance(STEADY_IN_GAMMA),
        *with_and_without_chance(
            replace(
                STEADY_IN_GAMMA,
                text=STEADY_IN_GAMMA.text.replace("SmallNORB", "Cars3D"),
                published="approximately steady",
                dataset="cars3d",
            )
        ),
        *with_and_without_chance(
            Statement(
                text="On SmallNORB the IRS of the β-VAE drops at β = 5 and 6{added}.",
                published="median dropped at 5 and 6",
                dataset="smallnorb",
                rule=Compared(
                    first=Side("β below 5", lambda row: row.get("beta", HIGH_BETA) < HIGH_BETA),
                    second=Side("β of 5 and more", lambda row: row.get("beta", 0.0) >= HIGH_BETA),
                ),
            )
        ),
        *with_and_without_chance(
            Statement(
                text="On Cars3D the IRS of the β-VAE rises with β{added}.",
                published="increasing β leads to increased score",
                dataset="cars3d",
                rule=_rise_with_beta,
            )
        ),
        Statement(
            text="The model is less sensitive to γ than the β-VAE is to β (as published).",
            published="in general less sensitive",
            among=lambda rows, family: at_common_points(rows, "paper", "beta-vae"),
            rule=Cases(
                cases=_ranges,
                enough=most,
                needs=all_four,
                measured="range of means over γ smaller than over β in {yes} of {total} combinations of dataset and "
                "metric",
                why="Range: highest less lowest mean over the values that were run. Holds where it is smaller in more "
                "than half; judged on all four datasets only. With our defaults γ changes nothing at all.",
            ),
        ),
    ],
    settings={"N": "points", "γ": "gammas", "β": "betas", "seeds": "seeds"},
)
