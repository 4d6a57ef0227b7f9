"""Against the β-VAE by hyperparameter: γ of the paper's recipe, β of the β-VAE."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drkm.experiments.disentanglement.training_points import GROUPS
from drkm.experiments.experiment import Row
from drkm.experiments.study import Study, StudySizes, Table, charts, claims, verdicts
from drkm.experiments.study.rows import at_common_points, by_value, chosen, values_of
from drkm.experiments.study.scales import METRIC_NAMES
from drkm.experiments.study.verdicts import STEADY

#: β from which on the paper's IRS dropped
HIGH_BETA = 5.0


def _by(rows: list[Row], family: str, name: str) -> dict[float, list[Row]]:
    return dict(sorted(by_value(chosen(rows, family=family), name).items()))


def _steady_in_gamma(rows: list[Row], said: claims.Statement, sizes: StudySizes) -> claims.Finding | None:
    groups = _by(rows, "paper", "gamma")
    found = verdicts.widest(groups.values(), said.score)
    if found is None:
        return None
    measured = ", ".join(f"γ = {g:g}: {np.mean(values_of(group, said.score)):.3f}" for g, group in groups.items())
    if said.score == "irs":
        measured += f"; chance {np.mean(values_of(chosen(rows, family='paper'), 'irs_chance')):.3f}"
    why = f"Highest less lowest mean over γ: {found}; holds where that is within ±{STEADY}, fails where it is beyond."
    return claims.Finding(measured, verdicts.alike(found, STEADY), why, found.draws)


def _rise_with_beta(rows: list[Row], said: claims.Statement, sizes: StudySizes) -> claims.Finding:
    betas = list(_by(rows, "beta-vae", "beta")) or [0.0]
    largest = claims.Side(f"largest β, {betas[-1]:g}", {"family": "beta-vae", "beta": betas[-1]})
    smallest = claims.Side(f"smallest β, {betas[0]:g}", {"family": "beta-vae", "beta": betas[0]})
    return claims.Compared(first=largest, second=smallest)(rows, said, sizes)


def _less_sensitive(rows: list[Row], score: str, said: claims.Statement) -> claims.Case | None:
    sides = (_by(rows, "paper", "gamma"), _by(rows, "beta-vae", "beta"))
    ours, theirs = (verdicts.widest(groups.values(), score) for groups in sides)
    return claims.Case(verdicts.decided(ours.estimate < theirs.estimate)) if ours and theirs else None


STEADY_IN_GAMMA = claims.Statement(
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
    tables=[Table(name="hyperparameters", by=("dataset", "family", "gamma", "beta"))],
    charts=[
        charts.Boxes(
            name="hyperparameters-{metric}",
            caption=f"{{metric}} by γ and β, over all N and seeds. {charts.BOXES}; up to five runs each is a dot.",
            kinds=[
                charts.family("paper", charts.values("gamma", "γ = {}")),
                *(charts.family(name, charts.at("any γ")) for name in ("drkm", "kpca", "kpca-centred")),
                charts.family("beta-vae", charts.values("beta", "β = {}")),
            ],
            tilt=True,
        )
    ],
    claims=[
        *claims.with_and_without_chance(
            STEADY_IN_GAMMA,
            replace(
                STEADY_IN_GAMMA,
                text=STEADY_IN_GAMMA.text.replace("SmallNORB", "Cars3D"),
                published="approximately steady",
                dataset="cars3d",
            ),
            claims.Statement(
                text="On SmallNORB the IRS of the β-VAE drops at β = 5 and 6{added}.",
                published="median dropped at 5 and 6",
                dataset="smallnorb",
                rule=claims.Compared(
                    first=claims.Side("β below 5", {"beta": lambda beta: beta < HIGH_BETA}),
                    second=claims.Side("β of 5 and more", {"beta": lambda beta: beta >= HIGH_BETA}),
                ),
            ),
            claims.Statement(
                text="On Cars3D the IRS of the β-VAE rises with β{added}.",
                published="increasing β leads to increased score",
                dataset="cars3d",
                rule=_rise_with_beta,
            ),
        ),
        claims.Statement(
            text="The model is less sensitive to γ than the β-VAE is to β (as published).",
            published="in general less sensitive",
            among=lambda rows, family: at_common_points(rows, "paper", "beta-vae"),
            rule=claims.Cases(
                judge=_less_sensitive,
                scores=tuple(METRIC_NAMES),
                enough=verdicts.most,
                needs=verdicts.all_four,
                measured="range of means over γ smaller than over β in {yes} of {total} combinations of dataset and "
                "metric",
                why="Range: highest less lowest mean over the values that were run. Holds where it is smaller in more "
                "than half; judged on all four datasets only. With our defaults γ changes nothing at all.",
            ),
        ),
    ],
    settings={"N": "points", "γ": "gammas", "β": "betas", "seeds": "seeds"},
)
