"""The influence of γ at each number of training images."""

from __future__ import annotations

from collections.abc import Iterator

from drkm.experiments.experiment import Row
from drkm.experiments.study import Study, StudySizes, Table, charts, claims, families, verdicts
from drkm.experiments.study.rows import by_value, chosen
from drkm.experiments.study.scales import DATASET_NAMES, SCORE_NAMES, SIZES
from drkm.experiments.study.verdicts import STEADY
from drkm.plotting import COLOURS

#: N → its colour; smaller scales use the first few
POINTS = dict(zip(SIZES["paper"].points, COLOURS, strict=False))
#: columns of the figures; models without γ show the same runs at every γ
COLUMNS = {
    "as published": "paper",
    "drkm defaults (any γ)": "drkm",
    "kernel PCA (no γ)": "kpca",
    "kernel PCA, centred (no γ)": "kpca-centred",
}
MEASURED = "{yes} of {total} lines horizontal, {no} not, {unsure} too uncertain"
WHY = (
    f"Horizontal: the 95 % interval of highest less lowest mean over γ is within ±{STEADY}; not: beyond it. Holds or "
    "fails where more than half of the lines are so. The lines of IRS are drawn with their chance level."
)


def _figures(rows: list[Row], sizes: StudySizes) -> Iterator[charts.Figure]:
    for dataset, here in by_value(rows, "dataset").items():
        columns = {title: list(_lines(here, family, sizes)) for title, family in COLUMNS.items()}
        caption = f"{DATASET_NAMES[dataset]}: mean score by γ and N, band of one standard error, chance dotted."
        yield from charts.lines(f"gamma-{dataset}", caption, columns, "γ")


def _lines(rows: list[Row], family: str, sizes: StudySizes) -> Iterator[charts.Series]:
    for n, colour in POINTS.items():
        here = chosen(rows, family=family, n=n)
        runs = by_value(here, "gamma") if family == "paper" else dict.fromkeys(sizes.gammas, here)
        yield charts.Series(f"N = {n}", colour, runs)


def _claims(rows: list[Row], sizes: StudySizes) -> Iterator[claims.Claim]:
    for score in ("irs", "irs_above", "mig", "sap"):
        found = claims.cases(chosen(rows, family="paper"), _horizontal, [score], ("dataset", "n"))
        text = f"For most datasets and N, {SCORE_NAMES[score]} does not change with γ (as published)."
        published = "most lines are roughly horizontal" if score == "irs" else ""
        yield claims.claim(text, rows, claims.enough(found, verdicts.majority, WHY, measured=MEASURED), published)


def _horizontal(rows: list[Row], score: str) -> claims.Case | None:
    found = verdicts.widest(by_value(rows, "gamma").values(), score)
    return None if found is None else claims.Case(verdicts.alike(found, STEADY), draws=found.draws)


EXPERIMENT = Study(
    name="gamma",
    title="The influence of γ by number of training images",
    place=10,
    text=lambda sizes: (
        "Two layers, s = (10, 5), as published, one line for each N; bands are over seeds. With our defaults γ changes "
        "nothing, because on the manifold it only multiplies the energy: the same run stands at every γ, and so does "
        "that of kernel PCA, which has none."
    ),
    groups=families(*COLUMNS.values(), hyperparameter="grid"),
    tables=Table(name="gamma", by=("dataset", "family", "n", "gamma")),
    figures=_figures,
    claims=_claims,
    settings={"N": "points", "γ": "gammas", "seeds": "seeds"},
)
