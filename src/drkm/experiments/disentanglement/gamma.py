"""The influence of γ at each number of training images."""

from __future__ import annotations

from dataclasses import replace

from drkm.experiments.experiment import Row
from drkm.experiments.study import Group, Study, StudySizes, Table, charts, claims, kernel_pca, verdicts
from drkm.experiments.study.rows import by_value
from drkm.experiments.study.scales import SIZES
from drkm.experiments.study.verdicts import STEADY
from drkm.plotting import COLOURS

#: N → its colour; the smaller scales have the first of them
POINTS = dict(zip(SIZES["paper"].points, COLOURS, strict=False))


def _at_every_gamma(rows: list[Row], sizes: StudySizes) -> dict[float, list[Row]]:
    return dict.fromkeys(sizes.gammas, rows)


def _horizontal(rows: list[Row], score: str, said: claims.Statement) -> claims.Case | None:
    found = verdicts.widest(by_value(rows, "gamma").values(), score)
    return None if found is None else claims.Case(verdicts.alike(found, STEADY), draws=found.draws)


HORIZONTAL = claims.Statement(
    text="For most datasets and N, {score} does not change with γ (as published).",
    rule=claims.Cases(
        judge=_horizontal,
        by=("dataset", "n"),
        where={"family": "paper"},
        enough=verdicts.majority,
        measured="{yes} of {total} lines horizontal, {no} not, {unsure} too uncertain",
        why=f"Horizontal: the 95 % interval of highest less lowest mean over γ is within ±{STEADY}; not: beyond it. "
        "Holds or fails where more than half of the lines are so. The lines of IRS are drawn with their chance level.",
    ),
)

EXPERIMENT = Study(
    name="gamma",
    title="The influence of γ by number of training images",
    place=10,
    text=lambda sizes: (
        "Two layers, s = (10, 5), as published, one line for each N; bands are over seeds. With our defaults γ changes "
        "nothing, because on the manifold it only multiplies the energy: the same run stands at every γ, and so does "
        "that of kernel PCA, which has none."
    ),
    groups=[Group(family="paper", hyperparameter="grid"), Group(family="drkm"), *kernel_pca()],
    tables=[Table(name="gamma", by=("dataset", "family", "n", "gamma"))],
    charts=[
        charts.Lines(
            name="gamma-{dataset}",
            caption="{dataset}: mean score by γ and N, band of one standard error, chance dotted.",
            columns={
                column: [
                    charts.Kind(f"N = {n}", colour, {"family": name, "n": n}, along) for n, colour in POINTS.items()
                ]
                for column, name, along in (
                    ("as published", "paper", charts.values("gamma")),
                    ("drkm defaults (any γ)", "drkm", _at_every_gamma),
                    ("kernel PCA (no γ)", "kpca", _at_every_gamma),
                    ("kernel PCA, centred (no γ)", "kpca-centred", _at_every_gamma),
                )
            },
            xlabel="γ",
        )
    ],
    claims=[
        replace(HORIZONTAL, published="most lines are roughly horizontal"),
        *claims.for_scores(("irs_above", "mig", "sap"), HORIZONTAL),
    ],
    settings={"N": "points", "γ": "gammas", "seeds": "seeds"},
)
