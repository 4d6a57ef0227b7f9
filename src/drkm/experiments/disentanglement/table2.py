"""Table 2: random start, kernel PCA start and the β-VAE, over seeds on one training draw and over draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import ResultTable
from drkm.experiments.study import Group, Study, StudySizes, Table, claims, tables, verdicts
from drkm.experiments.study.groups import KERNEL_PCA
from drkm.experiments.study.rows import chosen, grouped, scored, values_of
from drkm.experiments.study.scales import FAMILY_NAMES, METRIC_NAMES, ONE_LAYER, SCORE_NAMES, TWO_LAYERS, Layers
from drkm.experiments.study.verdicts import mean_and_spread

#: published mean and standard deviation of IRS and MIG on Cars3D, N = 800
PUBLISHED = {
    "random start": {"irs": (0.843, 0.044), "mig": (0.012, 0.010)},
    "kernel PCA start": {"irs": (0.785, 0.0), "mig": (0.040, 0.0)},
    "β-VAE": {"irs": (0.752, 0.145), "mig": (0.010, 0.011)},
}
METRICS = ("irs", "mig")
RANDOM, KPCA, RIVAL = PUBLISHED
DEFAULTS = FAMILY_NAMES["drkm"]
#: why a mean may differ from the published one, as far as is known without the authors' runs
REASONS = {
    RANDOM: "σ² = 50 is far below the scale of these images and the published schedule ends far from feasible, so that "
    "scores depend on a few images with large codes: on the draw, and on the step at which training ends.",
    KPCA: "the published table is of one training draw, which is not named; and the paper's start of layer 2 is rank "
    "deficient at this bandwidth, where ours solves layer 2 in the complement of layer 1.",
    RIVAL: "the published spread suggests that some of its β-VAEs collapsed; ours are stopped by held-out images.",
}
#: setting of the published table; it does not name its training images, so a draw takes their place
PAPER_DATASET, PAPER_N, DRAW = "cars3d", 800, 0
#: rows whose mean is comparable with the published one
PAPER_PLACE = {"dataset": PAPER_DATASET, "n": PAPER_N, "over": "draws"}
OWN_SIZES = {"start_points": PAPER_N, "evaluation": 4000, "seeds": 10}
#: images on which codes are scored: unseen ones, and as many drawn from all images
UNSEEN, ALL = "unseen", "all"
FIXED, LEARNED = "σ² = 50", "σ² learned"
#: parameters that differ from those of the other experiments; all else is omitted, so that runs are shared
STARTS = {RANDOM: {}, KPCA: {"init": "kpca"}}
WIDTHS = {FIXED: {"learn_bandwidth": False}, LEARNED: {}}
#: lines whose scores must not depend on the seed
DETERMINISTIC = (*(f"{KPCA}, {width}" for width in WIDTHS), DEFAULTS)


def _lines(over: str, draw: int | None) -> list[Group]:
    """Return the lines of the table over seeds on one draw, or over draws; a deterministic fit is run twice."""
    # name → family, components per layer, options
    lines: dict[str, tuple[str, Layers, Mapping[str, Any]]] = {
        f"{start}, {width}": ("paper", TWO_LAYERS, {**STARTS[start], **WIDTHS[width]})
        for start, width in product(STARTS, WIDTHS)
    }
    lines |= {RIVAL: ("beta-vae", TWO_LAYERS, {}), DEFAULTS: ("drkm", TWO_LAYERS, {})}
    if over == "draws":
        lines |= {FAMILY_NAMES[name]: ("drkm", ONE_LAYER, options) for name, options in KERNEL_PCA.items()}
    return [
        Group(
            family=family,
            stacks=(layers,),
            at="start_points",
            datasets="start_dataset",
            seeds=2 if over == "seeds" and name in DETERMINISTIC else "seeds",
            draw=draw,
            options=({**options, "all_images": True},),
            tags={"model": name, "over": over, "line": f"{name}; over {over}"},
            rows=_both,
        )
        for name, (family, layers, options) in lines.items()
    ]


def _both(row: Row) -> Iterator[Row]:
    """Yield one row for the unseen images and one for those drawn from all images."""
    yield {**scored(row), "images": UNSEEN}
    if isinstance(row["all_images"], Mapping):
        yield {**scored({**row, **row["all_images"]}), "images": ALL}


def _cells(rows: list[Row]) -> Row:
    above = tables.spreads(rows, {"IRS above chance": "irs_above"})
    return {**_beside_published(rows), **tables.summary(rows), **above}


def _beside_published(rows: list[Row]) -> Row:
    """Return the published numbers of the model, and our deviation from them in standard deviations."""
    found = PUBLISHED.get(rows[0]["model"].partition(", σ²")[0])
    place = {name: rows[0][name] for name in PAPER_PLACE}
    cells: Row = {}
    for metric in METRICS:
        name = METRIC_NAMES[metric]
        cells[f"{name} published"] = "{:.3f} ± {:.3f}".format(*found[metric]) if found else ""
        apart = _deviations(values_of(rows, metric), *found[metric]) if found and place == PAPER_PLACE else None
        cells[f"{name}: deviations apart"] = "" if apart is None else round(apart, 1)
    return cells


def _deviations(values: Sequence[float], mean: float, deviation: float) -> float | None:
    """Return the distance of our mean from the published one, in units of the larger of the two standard deviations."""
    unit = max(deviation, verdicts.spread(values)) if len(values) > 1 else 0.0
    return abs(float(np.mean(values)) - mean) / unit if unit > 0 else None


def _in_front(rows: list[Row], sizes: StudySizes) -> list[ResultTable]:
    """Return the published table with ours beside it, in the columns of a page."""
    lines = []
    for model, published in PUBLISHED.items():
        group = chosen(rows, model=model if model == RIVAL else f"{model}, {FIXED}", over="draws", images=UNSEEN)
        if not group:
            continue
        line: Row = {"model": model}
        for metric, (mean, deviation) in published.items():
            chance = values_of(group, f"{metric}_chance")
            line[f"{METRIC_NAMES[metric]} published"] = f"{mean:.3f} ± {deviation:.3f}"
            line[f"{METRIC_NAMES[metric]} ours"] = mean_and_spread(values_of(group, metric))
            line[f"{METRIC_NAMES[metric]} chance"] = f"{np.mean(chance):.3f}" if chance else ""
        lines.append(line)
    caption = (
        f"Published (Cars3D, N = {PAPER_N}) and ours ({sizes.start_name}, N = {sizes.start_points}): means ± standard "
        f"deviations, ours over training draws, at {FIXED}, on unseen images."
    )
    return [ResultTable("beside", caption, lines, in_front=True)] if lines else []


def _claims(rows: list[Row], sizes: StudySizes) -> Iterator[claims.Claim]:
    for images, model, metric in product((UNSEEN, ALL), PUBLISHED, METRICS):
        yield _number(rows, sizes, model, metric, images)
    for width in WIDTHS:
        yield from _starts(rows, sizes, width)
    found = claims.unmoved(
        grouped(chosen(rows, model=DETERMINISTIC.__contains__, over="seeds"), "line", "images").values(),
        tuple(METRIC_NAMES),
        "Two fits with different seeds on one draw; holds where all scores are equal to the last bit.",
        "largest standard deviation over seeds {:.3g}",
    )
    yield claims.claim("With the kernel PCA start no score depends on a seed.", rows, found, "± 0.000")
    yield claims.claim("The IRS of the β-VAE varies most.", rows, _widest_rival(rows), "0.145 against 0.044 and 0")


def _number(rows: list[Row], sizes: StudySizes, model: str, metric: str, images: str) -> claims.Claim:
    """Return the claim that our mean over draws is within two standard deviations of the published one."""
    mean, deviation = PUBLISHED[model][metric]
    name = model if model == RIVAL else f"{model}, {FIXED}"
    group = chosen(rows, model=name, over="draws", images=images)
    measured = verdicts.described(group, metric)
    apart = _deviations(values_of(group, metric), mean, deviation)
    if (sizes.start_dataset, sizes.start_points) != (PAPER_DATASET, PAPER_N) or apart is None:
        why = f"This scale has not the published dataset and N = {PAPER_N}, or runs are missing."
        found = claims.Finding(measured, claims.Verdict.UNDECIDED, why)
    else:
        measured += f", {apart:.1f} standard deviations apart"
        measured += "" if apart <= 2 else f"; likely reason: {REASONS[model]}"
        why = "The larger standard deviation of the published one and ours over training draws."
        found = claims.Finding(measured, verdicts.decided(apart <= 2), why)
    where = {UNSEEN: "unseen images", ALL: "images drawn from all"}[images]
    text = f"{SCORE_NAMES[metric]} of the {name} on {where} of Cars3D is within two standard deviations."
    return claims.claim(text, rows, found, f"{mean:.3f} ± {deviation:.3f}")


def _starts(rows: list[Row], sizes: StudySizes, width: str) -> Iterator[claims.Claim]:
    """Yield the paper's claims about the two starts and the β-VAE, at one bandwidth."""
    models = {KPCA: f"{KPCA}, {width}", RANDOM: f"{RANDOM}, {width}", RIVAL: RIVAL}
    sides = {name: (name, chosen(rows, model=model, over="draws", images=UNSEEN)) for name, model in models.items()}
    ends = "over training draws, so that the deterministic start has a spread; holds where it is above 0."
    if sizes.start_dataset != PAPER_DATASET:
        ends += " Judged on another dataset than the published one."
    for text, first, second, published in (
        ("has a lower IRS than the random start", RANDOM, KPCA, "0.785 against 0.843"),
        ("is ahead of the β-VAE in IRS", KPCA, RIVAL, "0.785 against 0.752"),
    ):
        judge = partial(claims.compared, sides[first], sides[second], ends=ends)
        yield from claims.about_irs(f"The kernel PCA start {text} ({width})", rows, judge, published)
    for rival, published in ((RANDOM, "0.040 against 0.012"), (RIVAL, "0.040 against 0.010")):
        text = f"The kernel PCA start is ahead of the {rival} in MIG ({width})."
        yield claims.claim(text, rows, claims.compared(sides[KPCA], sides[rival], "mig", ends=ends), published)


def _widest_rival(rows: list[Row]) -> claims.Finding:
    lines = ((RIVAL, RIVAL, "seeds"), (KPCA, f"{KPCA}, {FIXED}", "draws"), (RANDOM, f"{RANDOM}, {FIXED}", "seeds"))
    spreads = {
        f"{name} over {over}": verdicts.spread(values_of(chosen(rows, model=model, over=over, images=UNSEEN), "irs"))
        for name, model, over in lines
    }
    measured = "; ".join(f"{name} {value:.3f}" for name, value in spreads.items())
    rival, *ours = spreads.values()
    verdict = verdicts.decided(rival > max(ours), known=not np.isnan([rival, *ours]).any())
    why = "Standard deviations of IRS; holds where that of the β-VAE is the largest."
    return claims.Finding(measured, verdict, why)


EXPERIMENT = Study(
    name="table2",
    title="Table 2: where training begins",
    place=11,
    text=lambda sizes: (
        f"Two layers, s = (10, 5), on {sizes.start_name} with N = {sizes.start_points}; published for Cars3D with N = "
        f"{PAPER_N}. The paper's spread is over seeds, so the first lines hold one training draw fixed and vary the "
        "seed; the later ones vary the draw. The caption of the published table says σ² = 50, the text that "
        f"bandwidths are learned: both are run. Each fit is scored on {sizes.evaluation} unseen images and on as many "
        "drawn from all images, as the paper may have done: training images can be among these. IRS rewards codes "
        "with tails; its chance level says how much."
    ),
    groups=[*_lines("seeds", DRAW), *_lines("draws", None)],
    tables=tables.several(
        _in_front,
        Table(
            name="table2",
            by=("line", "images"),
            caption=f"Published (Cars3D, N = {PAPER_N}) and own numbers ({{dataset}}); a deviation is the larger of "
            "the published one and ours over draws",
            cells=_cells,
        ),
    ),
    claims=_claims,
    settings={
        "dataset": "start_name",
        "N": "start_points",
        "images scored": "evaluation",
        "seeds": "seeds",
        "β": 4,
        "γ": 1,
    },
    own_sizes={"medium": OWN_SIZES, "paper": OWN_SIZES},
)
