"""The number of layers: 1, 2 and 3 layers as the number of training images grows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.study import Group, Study, StudySizes, Table, charts, claims, families, verdicts
from drkm.experiments.study.rows import by_points, by_value, chosen, grouped, values_of
from drkm.experiments.study.scales import ARCHITECTURES, DATASET_NAMES, FAMILY_NAMES, METRIC_NAMES, SCORE_NAMES, label
from drkm.plotting import BLUE, GREEN, VERMILION

FAMILIES = ("paper", "drkm")
COLOURS = {1: GREEN, 2: BLUE, 3: VERMILION}
NAMES = {depth: f"{depth} layer{'s' if depth > 1 else ''} {label(s)}" for depth, s in ARCHITECTURES.items()}
#: largest difference in SAP that counts as similar, and least ratio of MIG that counts as the paper's "double"
SIMILAR_SAP, DOUBLE = 0.01, 1.5
DOUBLE_N = 400
BETTER = "Better: the 95 % interval of the difference is above 0"


def _figures(rows: list[Row], sizes: StudySizes) -> Iterator[charts.Figure]:
    for dataset, here in by_value(rows, "dataset").items():
        columns = {FAMILY_NAMES[name]: _lines(chosen(here, family=name)) for name in FAMILIES}
        centred = by_points(chosen(here, family="kpca-centred"))
        columns[FAMILY_NAMES["drkm"]].append(charts.family("kpca-centred", centred))
        caption = f"{DATASET_NAMES[dataset]}: mean score by N and number of layers, "
        caption += "band of one standard error, chance dotted."
        yield from charts.lines(f"layers-{dataset}", caption, columns, "training images N")


def _lines(rows: list[Row]) -> list[charts.Series]:
    return [
        charts.Series(NAMES[depth], COLOURS[depth], by_points(chosen(rows, depth=depth))) for depth in ARCHITECTURES
    ]


def _claims(rows: list[Row], sizes: StudySizes) -> Iterator[claims.Claim]:
    for family in FAMILIES:
        own = chosen(rows, family=family)
        yield from _on_cars3d(chosen(own, dataset="cars3d"), FAMILY_NAMES[family])
        yield from _on_all(own, FAMILY_NAMES[family])


def _on_cars3d(rows: list[Row], name: str) -> Iterator[claims.Claim]:
    text = f"On Cars3D the number of layers hardly changes SAP ({name})."
    yield claims.claim(text, rows, _similar_sap(rows), "similar SAP")
    for score in ("irs", "irs_above", "mig"):
        text = f"On Cars3D the number of layers matters for {SCORE_NAMES[score]} ({name})."
        published = "" if score == "irs_above" else "generally greatly affected"
        yield claims.claim(text, rows, _matters(rows, score), published)
    text = f"On Cars3D at N = {DOUBLE_N}, 3 layers have about double the MIG of 1 and 2 layers ({name})."
    yield claims.claim(text, rows, _double_mig(rows), "approximately double")


def _on_all(rows: list[Row], name: str) -> Iterator[claims.Claim]:
    text = f"2 layers are the most consistent choice: best or close to best in most cases ({name})."
    yield claims.claim(text, rows, _consistent(rows), "in most cases the best or close to the best")

    third = claims.between({"depth": 3}, {"depth": 2}, tie=0.0)
    found = claims.enough(
        claims.cases(rows, third, METRIC_NAMES, ("dataset", "n")),
        verdicts.not_most,
        f"{BETTER}. Fails where that is so in more than half of the cases; needs more than one dataset.",
        measured="3 layers better than 2 in {yes}, worse in {no} of {total} combinations of dataset, N and metric",
        known=verdicts.several(rows),
    )
    text = f"A third layer does not consistently raise the scores ({name})."
    yield claims.claim(text, rows, found, "did not consistently increase")
    published = "a 2-layer architecture is a better choice than a single layer"
    text = f"2 layers are better than 1 in IRS ({name})"
    yield from claims.about_irs(text, rows, partial(_two_better, rows), published)
    text = f"2 layers are better than 1 in MIG ({name})."
    yield claims.claim(text, rows, _two_better(rows, "mig"), published)


def _by_depth(rows: list[Row]) -> dict[str, list[Row]]:
    return {NAMES[depth]: chosen(rows, depth=depth) for depth in ARCHITECTURES}


def _similar_sap(rows: list[Row]) -> claims.Finding:
    if not rows:
        return claims.not_run("cars3d")
    groups = _by_depth(rows)
    found = [verdicts.difference(*pair, "sap") for pair in combinations(groups.values(), 2)]
    verdict = verdicts.together(verdicts.alike(one, SIMILAR_SAP) for one in found)
    why = f"All N together; holds where the 95 % intervals of all three differences are within ±{SIMILAR_SAP}."
    return claims.Finding(claims.named_groups(groups, "sap"), verdict, why, verdicts.fewest_draws(*found))


def _matters(rows: list[Row], score: str) -> claims.Finding:
    groups = _by_depth(rows)
    if not all(values_of(group, score) for group in groups.values()):
        return claims.not_run("cars3d")
    ordered = dict(sorted(groups.items(), key=lambda group: np.mean(values_of(group[1], score))))
    found = verdicts.widest(groups.values(), score)
    why = f"All N together; best less worst number of layers: {found}. Holds where it is above 0, fails where it "
    why += f"ends below {verdicts.TIE}."
    measured, draws = claims.named_groups(ordered, score), verdicts.fewest_draws(found)
    return claims.Finding(measured, verdicts.greater(found), why, draws)


def _double_mig(rows: list[Row]) -> claims.Finding:
    groups = _by_depth(chosen(rows, n=DOUBLE_N))
    if not all(groups.values()):
        return claims.not_run("cars3d")
    *fewer, three = groups.values()
    # To test a ratio as a difference, scale the scores of the other group before comparing.
    more = [[{**row, "mig": DOUBLE * row["mig"]} for row in group if row["mig"] is not None] for group in fewer]
    found = [verdicts.difference(three, group, "mig") for group in more]
    verdict = verdicts.together(map(verdicts.greater, found))
    why = f"Holds where the mean of 3 layers is above {DOUBLE} times those of 1 and of 2 layers, 95 % intervals."
    return claims.Finding(claims.named_groups(groups, "mig"), verdict, why, verdicts.fewest_draws(*found))


def _consistent(rows: list[Row]) -> claims.Finding:
    close, cases = dict.fromkeys(ARCHITECTURES, 0), 0
    for here in grouped(rows, "dataset", "n").values():
        for metric in METRIC_NAMES:
            found = {depth: values_of(chosen(here, depth=depth), metric) for depth in ARCHITECTURES}
            if all(len(values) > 1 for values in found.values()):
                best = max(found.values(), key=np.mean)
                bound = np.mean(best) - verdicts.spread(best) / len(best) ** 0.5
                close = {depth: close[depth] + bool(np.mean(values) >= bound) for depth, values in found.items()}
                cases += 1
    counts = ", ".join(f"{depth}: {count}" for depth, count in close.items())
    holds = close[2] > cases / 2 and close[2] >= max(close.values())
    return claims.Finding(
        f"best or close to best by number of layers: {counts}, of {cases} combinations of dataset, N and metric",
        verdicts.decided(holds, known=bool(cases) and verdicts.several(rows)),
        "Close: the mean is within one standard error of the best mean. Holds where 2 layers are so in more than "
        "half of the cases and in no fewer than 1 and 3 layers; needs more than one dataset.",
    )


def _two_better(rows: list[Row], score: str) -> claims.Finding:
    return claims.enough(
        claims.cases(rows, claims.between({"depth": 2}, {"depth": 1}), [score], ("dataset", "n")),
        verdicts.majority,
        f"{BETTER}, in more than half of the combinations; fails where it ends below {verdicts.TIE} in half of them; "
        "needs more than one dataset.",
        measured="better in {yes}, not better in {no} of {total} combinations of dataset and N",
        known=verdicts.several(rows),
    )


EXPERIMENT = Study(
    name="layers",
    title="Number of layers",
    place=7,
    text=lambda sizes: (
        "1 layer with s = 10, 2 layers with (10, 5), of which the ten codes of layer 1 are scored, and 3 layers "
        f"with (2, 2, 6), of which all ten are, on N = {sizes.listed('points')} images. As published: "
        f"{'all γ' if sizes.every_gamma else 'γ = 1 (two layers: all γ)'} and seeds together. Our defaults: training "
        "draws; γ changes nothing on the manifold, so that one run stands for all γ. One layer of our defaults is "
        "kernel PCA."
    ),
    groups=[
        Group(family=name, stacks=(layers,), hyperparameter="grid")
        for name in FAMILIES
        for layers in ARCHITECTURES.values()
    ]
    + families("kpca-centred"),
    tables=Table(name="layers", by=("dataset", "family", "layers", "n")),
    figures=_figures,
    claims=_claims,
    settings={"N": "points", "γ": "gammas", "seeds": "seeds"},
)
