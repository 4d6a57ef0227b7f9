"""The number of layers: 1, 2 and 3 layers as the number of training images grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from drkm.experiments.disentanglement._charts import Cell, Series, line_grid
from drkm.experiments.disentanglement._sweep import (
    ARCHITECTURES,
    DATASET_NAMES,
    FAMILY_NAMES,
    METRIC_NAMES,
    Row,
    by_points,
    chosen,
    drkm_runs,
    label,
    paper_runs,
    scored_rows,
    sizes_of,
    values_of,
)
from drkm.experiments.disentanglement._tables import score_table
from drkm.experiments.disentanglement._verdicts import (
    SCORE_NAMES,
    alike,
    all_of,
    described,
    difference,
    greater,
    majority,
    not_run,
    with_and_without_chance,
)
from drkm.experiments.section import Claim, Figure, Section, Verdict
from drkm.plotting import BLUE, GREEN, VERMILION
from drkm.runs.configuration import Configuration, Results

TITLE = "Number of layers"
FAMILIES = ("paper", "drkm")
COLOURS = {1: GREEN, 2: BLUE, 3: VERMILION}
NAMES = {depth: f"{depth} layer{'s' if depth > 1 else ''} {label(s)}" for depth, s in ARCHITECTURES.items()}
#: largest difference of SAP that counts as similar, and of MIG "double": at least half as much again
SIMILAR_SAP, DOUBLE = 0.01, 1.5
DOUBLE_N = 400


def configurations(scale: str) -> list[Configuration]:
    """Return the runs of this experiment."""
    sizes = sizes_of(scale)
    return [run for runs in (paper_runs, drkm_runs) for layers in ARCHITECTURES.values() for run in runs(sizes, layers)]


def section(results: Results, scale: str) -> Section:
    """Return tables, line charts and claims."""
    sizes = sizes_of(scale)
    rows = [{**row, "depth": len(row["layers"])} for row in scored_rows(results, configurations(scale))]
    shown = "all γ" if sizes.every_gamma else "γ = 1 (two layers: all γ)"
    text = (
        "1 layer with s = 10, 2 layers with (10, 5), of which the ten codes of layer 1 are scored, and 3 layers "
        f"with (2, 2, 6), of which all ten are, on N = {', '.join(map(str, sizes.points))} images. As published: "
        f"{shown} and seeds together. Our defaults: training draws; γ changes nothing on the manifold, so that one "
        "run stands for all γ. One layer of our defaults is kernel PCA."
    )
    return Section(
        "layers",
        TITLE,
        text,
        tables=[score_table("layers", "Mean ± standard deviation", rows, ("dataset", "family", "layers", "n"))],
        figures=[_figure(chosen(rows, dataset=d), d) for d in sizes.datasets if chosen(rows, dataset=d)],
        claims=[claim for family in FAMILIES for claim in claims(chosen(rows, family=family), family)],
        settings={"N": list(sizes.points), "γ": list(sizes.gammas), "seeds": sizes.seeds},
    )


def _figure(rows: Sequence[Row], dataset: str) -> Figure:
    def draw() -> object:
        cells = {
            (title, FAMILY_NAMES[family]): Cell(
                metric,
                [
                    Series(NAMES[depth], COLOURS[depth], by_points(chosen(rows, family=family, depth=depth)))
                    for depth in ARCHITECTURES
                ],
            )
            for metric, title in METRIC_NAMES.items()
            for family in FAMILIES
        }
        return line_grid(cells, "training images N")

    caption = (
        f"{DATASET_NAMES[dataset]}: mean score by N and number of layers, band of one standard error, chance dotted."
    )
    return Figure(f"layers-{dataset}", caption, draw)


def claims(rows: Sequence[Row], family: str) -> list[Claim]:
    """Return the paper's statements about the number of layers, judged on one family."""
    name = FAMILY_NAMES[family]
    return [
        _similar_sap(rows, name),
        *(_layers_matter(rows, name, score) for score in ("irs", "irs_above", "mig")),
        _double_mig(rows, name),
        _two_layers_consistent(rows, name),
        _third_layer_not_consistently_better(rows, name),
        *with_and_without_chance(lambda score, added: _two_better_than_one(rows, name, score, added)),
        _two_better_than_one(rows, name, "mig", ""),
    ]


def _similar_sap(rows: Sequence[Row], name: str) -> Claim:
    text, published = f"On Cars3D the number of layers hardly changes SAP ({name}).", "similar SAP"
    here = chosen(rows, dataset="cars3d")
    if not here:
        return not_run(text, published, "cars3d")
    groups = [chosen(here, depth=depth) for depth in ARCHITECTURES]
    found = [
        difference(values_of(a, "sap"), values_of(b, "sap")) for a, b in (*pairwise(groups), (groups[0], groups[2]))
    ]
    measured = "; ".join(f"{NAMES[d]}: {described(g, 'sap')}" for d, g in zip(ARCHITECTURES, groups, strict=True))
    why = f"All N together; holds where the 95 % intervals of all three differences are within ±{SIMILAR_SAP}."
    return Claim(text, published, measured, all_of(alike(one, SIMILAR_SAP) for one in found), why)


def _layers_matter(rows: Sequence[Row], name: str, score: str) -> Claim:
    text = f"On Cars3D the number of layers matters for {SCORE_NAMES[score]} ({name})."
    published = "generally greatly affected" if not score.endswith("_above") else ""
    groups = [chosen(rows, dataset="cars3d", depth=depth) for depth in ARCHITECTURES]
    if not all(values_of(group, score) for group in groups):
        return not_run(text, published, "cars3d")
    groups.sort(key=lambda group: np.mean(values_of(group, score)))
    found = difference(values_of(groups[-1], score), values_of(groups[0], score))
    measured = "; ".join(f"{NAMES[group[0]['depth']]}: {described(group, score)}" for group in groups)
    why = f"All N together; best less worst number of layers: {found}. Holds where it is above 0, fails nowhere: no "
    why += "difference seen is not proof of none."
    return Claim(text, published, measured, greater(found), why)


def _double_mig(rows: Sequence[Row], name: str) -> Claim:
    text = f"On Cars3D at N = {DOUBLE_N}, 3 layers have about double the MIG of 1 and 2 layers ({name})."
    published = "approximately double"
    groups = {d: chosen(rows, dataset="cars3d", n=DOUBLE_N, depth=d) for d in ARCHITECTURES}
    if not all(groups.values()):
        return not_run(text, published, "cars3d")
    three = values_of(groups[3], "mig")
    verdicts = []
    for depth in (1, 2):
        # "Half as much again" as a difference: the other group is multiplied before the two are compared.
        verdicts.append(greater(difference(three, [DOUBLE * value for value in values_of(groups[depth], "mig")])))
    measured = "; ".join(f"{NAMES[d]}: {described(group, 'mig')}" for d, group in groups.items())
    why = f"Holds where the mean of 3 layers is above {DOUBLE} times those of 1 and of 2 layers, 95 % intervals."
    return Claim(text, published, measured, all_of(verdicts), why)


def _cases(rows: Sequence[Row], metrics: Sequence[str] = tuple(METRIC_NAMES)) -> Iterator[dict[int, list[float]]]:
    """Yield the scores by number of layers for every dataset, N and metric that has all three."""
    for dataset, n in sorted({(row["dataset"], row["n"]) for row in rows}):
        for metric in metrics:
            found = {d: values_of(chosen(rows, dataset=dataset, n=n, depth=d), metric) for d in ARCHITECTURES}
            if all(len(values) > 1 for values in found.values()):
                yield found


def _two_layers_consistent(rows: Sequence[Row], name: str) -> Claim:
    close = dict.fromkeys(ARCHITECTURES, 0)
    cases = list(_cases(rows))
    for case in cases:
        best = max(case.values(), key=np.mean)
        bound = np.mean(best) - np.std(best, ddof=1) / len(best) ** 0.5
        for depth, values in case.items():
            close[depth] += bool(np.mean(values) >= bound)
    several = len({row["dataset"] for row in rows}) > 1
    verdict = Verdict.UNDECIDED
    if cases and several:
        most = close[2] > len(cases) / 2 and close[2] >= max(close.values())
        verdict = Verdict.HELD if most else Verdict.FAILED
    counts = ", ".join(f"{depth}: {count}" for depth, count in close.items())
    return Claim(
        f"2 layers are the most consistent choice: best or close to best in most cases ({name}).",
        "in most cases the best or close to the best",
        f"best or close to best by number of layers: {counts}, of {len(cases)} combinations of dataset, N and metric",
        verdict,
        "Close: the mean is within one standard error of the best mean. Holds where 2 layers are so in more than "
        "half of the cases and in no fewer than 1 and 3 layers; needs more than one dataset.",
    )


def _third_layer_not_consistently_better(rows: Sequence[Row], name: str) -> Claim:
    judged = [greater(difference(case[3], case[2])) for case in _cases(rows)]
    better, worse = judged.count(Verdict.HELD), judged.count(Verdict.FAILED)
    several = len({row["dataset"] for row in rows}) > 1
    verdict = (
        (Verdict.FAILED if better > len(judged) / 2 else Verdict.HELD) if judged and several else Verdict.UNDECIDED
    )
    return Claim(
        f"A third layer does not consistently raise the scores ({name}).",
        "did not consistently increase",
        f"3 layers better than 2 in {better}, worse in {worse} of {len(judged)} combinations of dataset, N and metric",
        verdict,
        "Better: the 95 % interval of the difference is above 0. Fails where that is so in more than half of the "
        "cases; needs more than one dataset.",
    )


def _two_better_than_one(rows: Sequence[Row], name: str, score: str, added: str) -> Claim:
    judged = [greater(difference(case[2], case[1])) for case in _cases(rows, (score,))]
    better, worse = judged.count(Verdict.HELD), judged.count(Verdict.FAILED)
    several = len({row["dataset"] for row in rows}) > 1
    return Claim(
        f"2 layers are better than 1 in {METRIC_NAMES[score.removesuffix('_above')]} ({name}){added}.",
        "a 2-layer architecture is a better choice than a single layer" if not added else "",
        f"better in {better}, worse in {worse} of {len(judged)} combinations of dataset and N",
        majority(better, worse, len(judged)) if several else Verdict.UNDECIDED,
        "Better: the 95 % interval of the difference is above 0, in more than half of the combinations; fails where "
        "it is worse in more than half; needs more than one dataset.",
    )
