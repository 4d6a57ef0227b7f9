"""Table 2: random start, kernel PCA start and the β-VAE on one training draw, over seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import Verdict
from drkm.experiments.study import Group, Study, StudySizes, Table, claims, tables, verdicts
from drkm.experiments.study.groups import KERNEL_PCA
from drkm.experiments.study.rows import chosen, values_of
from drkm.experiments.study.scales import FAMILY_NAMES, METRIC_NAMES, TWO_LAYERS

#: published mean and standard deviation of IRS and MIG on Cars3D, N = 800
PUBLISHED = {
    "random start": {"irs": (0.843, 0.044), "mig": (0.012, 0.010)},
    "kernel PCA start": {"irs": (0.785, 0.0), "mig": (0.040, 0.0)},
    "β-VAE": {"irs": (0.752, 0.145), "mig": (0.010, 0.011)},
}
#: how far a mean may be from the published one beyond the two standard deviations over seeds
TOLERANCE = {"irs": 0.05, "mig": 0.01}
PAPER_N, DRAW = 800, 0
RANDOM, KPCA, RIVAL = PUBLISHED
FIXED, LEARNED = "σ² = 50", "σ² learned"
#: what the parameters of a run name where it is not as in the other experiments, which share their runs
STARTS = {RANDOM: {}, KPCA: {"init": "kpca"}}
WIDTHS = {FIXED: {"learn_bandwidth": False}, LEARNED: {}}
#: lines that no seed should move
DETERMINISTIC = (*(f"{KPCA}, {width}" for width in WIDTHS), "drkm defaults")


def _lines(over: str, draw: int | None) -> list[Group]:
    """Return the lines of the table over seeds on one draw, or over draws; a fit without a seed is run twice."""

    def line(family: str, name: str, seeded: bool, **options: object) -> Group:
        return Group(
            family=family,
            at="start_points",
            datasets="start_dataset",
            seeds="seeds" if seeded or over == "draws" else 2,
            draw=draw,
            options=(options,),
            tags={"line": f"{name}; over {over}"},
        )

    starts = [
        line("paper", f"{start}, {width}", start == RANDOM, **STARTS[start], **WIDTHS[width])
        for start in STARTS
        for width in WIDTHS
    ]
    ours = line("drkm", "drkm defaults", seeded=False)
    shallow = [
        replace(ours, stacks=(TWO_LAYERS[:1],), options=(options,), tags=_line(FAMILY_NAMES[name], over))
        for name, options in KERNEL_PCA.items()
        if over == "draws"
    ]
    return [*starts, line("beta-vae", RIVAL, seeded=True), ours, *shallow]


def _cells(rows: list[Row]) -> Row:
    above = tables.spreads(rows, {"IRS above chance": "irs_above"})
    return {**_published(rows[0]["line"]), **tables.summary(rows), **above}


def _published(name: str) -> dict[str, str]:
    model, _, over = name.partition("; over ")
    found = PUBLISHED.get(model.removesuffix(f", {FIXED}")) if over == "seeds" else None
    return {
        f"{metric.upper()} published": "{:.3f} ± {:.3f}".format(*found[metric]) if found else "" for metric in TOLERANCE
    }


def _line(name: str, over: str) -> dict[str, str]:
    return {"line": f"{name}; over {over}"}


def _number(model: str, metric: str) -> claims.Statement:
    """Return the statement that a mean over seeds is about the published one."""
    mean, deviation = PUBLISHED[model][metric]
    name = model if model == RIVAL else f"{model}, {FIXED}"

    def rule(rows: list[Row], said: claims.Statement, sizes: StudySizes) -> claims.Finding:
        group = chosen(rows, **_line(name, "seeds"))
        values = values_of(group, metric)
        if (sizes.start_dataset, sizes.start_points) != ("cars3d", PAPER_N) or not values:
            why = f"This scale has not the published dataset and N = {PAPER_N}, or the runs are missing."
            return claims.Finding(verdicts.described(group, metric), Verdict.UNDECIDED, why)
        near = 2 * max(deviation, verdicts.spread(values) if len(values) > 1 else 0.0) + TOLERANCE[metric]
        why = f"Holds within {near:.3f} of the published mean: two standard deviations over seeds and "
        why += f"{TOLERANCE[metric]}."
        return claims.Finding(
            verdicts.described(group, metric), verdicts.decided(bool(abs(np.mean(values) - mean) <= near)), why
        )

    text = f"{metric.upper()} of the {name} on Cars3D with N = {PAPER_N}."
    return claims.Statement(text=text, published=f"{mean:.3f} ± {deviation:.3f}", rule=rule)


def _starts(width: str) -> list[claims.Statement]:
    """Return what the paper says about the two starts and the β-VAE, at one bandwidth."""
    kpca, random = (claims.Side(start, _line(f"{start}, {width}", "draws")) for start in (KPCA, RANDOM))
    rival = claims.Side(RIVAL, _line(RIVAL, "draws"))

    def stated(text: str, published: str, *sides: claims.Side, score: str = "irs") -> claims.Statement:
        def rule(rows: list[Row], said: claims.Statement, sizes: StudySizes) -> claims.Finding:
            where = "" if sizes.start_dataset == "cars3d" else " Judged on another dataset than the published one."
            ends = "over training draws, so that the deterministic start has a spread; holds where it is above 0."
            return claims.Compared(first=sides[0], second=sides[1], ends=ends + where)(rows, said, sizes)

        text = f"The kernel PCA start {text} ({width}){{added}}."
        return claims.Statement(text=text, published=published, rule=rule, score=score)

    return [
        *claims.with_and_without_chance(
            stated("has a lower IRS than the random start", "0.785 against 0.843", random, kpca),
            stated("is ahead of the β-VAE in IRS", "0.785 against 0.752", kpca, rival),
        ),
        stated("is ahead of the random start in MIG", "0.040 against 0.012", kpca, random, score="mig"),
        stated("is ahead of the β-VAE in MIG", "0.040 against 0.010", kpca, rival, score="mig"),
    ]


def _widest_rival(rows: list[Row], said: claims.Statement, sizes: StudySizes) -> claims.Finding:
    lines = {
        f"{RIVAL} over seeds": _line(RIVAL, "seeds"),
        f"{KPCA} over draws": _line(f"{KPCA}, {FIXED}", "draws"),
        f"{RANDOM} over seeds": _line(f"{RANDOM}, {FIXED}", "seeds"),
    }
    spreads = {name: verdicts.spread(values_of(chosen(rows, **where), "irs")) for name, where in lines.items()}
    measured = "; ".join(f"{name} {value:.3f}" for name, value in spreads.items())
    rival, *ours = spreads.values()
    verdict = verdicts.decided(rival > max(ours), known=not np.isnan([rival, *ours]).any())
    return claims.Finding(
        measured, verdict, "Standard deviations of IRS; holds where that of the β-VAE is the largest."
    )


EXPERIMENT = Study(
    name="table2",
    title="Table 2: where training begins",
    place=11,
    text=lambda sizes: (
        f"Two layers, s = (10, 5), on {sizes.start_name} with N = {sizes.start_points}; published for Cars3D with N = "
        f"{PAPER_N}. The paper's spread is over seeds, so the first lines hold one training draw fixed and vary the "
        "seed; the later ones vary the draw. The caption of the published table says σ² = 50, the text that "
        "bandwidths are learned: both are run. IRS rewards codes with tails; its chance level says how much."
    ),
    groups=[*_lines("seeds", DRAW), *_lines("draws", None)],
    tables=[
        Table(
            name="table2",
            by=("line",),
            caption=f"Published (Cars3D, N = {PAPER_N}) and own numbers ({{dataset}})",
            cells=_cells,
        )
    ],
    claims=[
        *(_number(model, metric) for model in PUBLISHED for metric in TOLERANCE),
        *(said for width in WIDTHS for said in _starts(width)),
        claims.Statement(
            text="With the kernel PCA start no score depends on a seed.",
            published="± 0.000",
            rule=claims.Unmoved(
                by=("line",),
                where={"line": [f"{name}; over seeds" for name in DETERMINISTIC].__contains__},
                scores=tuple(METRIC_NAMES),
                measured="largest standard deviation over seeds {:.3g}",
                why="Two fits with different seeds on one draw; holds where all scores are equal to the last bit.",
            ),
        ),
        claims.Statement(
            text="The IRS of the β-VAE varies most.", published="0.145 against 0.044 and 0", rule=_widest_rival
        ),
    ],
    settings={"dataset": "start_name", "N": "start_points", "seeds": "seeds", "β": 4, "γ": 1},
)
