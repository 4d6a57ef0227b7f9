"""Table 2: random start, kernel PCA start and the β-VAE on one training draw, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.experiments.disentanglement._sweep import (
    DATASET_NAMES,
    TWO_LAYERS,
    Row,
    Sizes,
    beta_vae_run,
    drkm_run,
    paper_run,
    scored_rows,
    sizes_of,
    unique,
    values_of,
)
from drkm.experiments.disentanglement._tables import summary
from drkm.experiments.disentanglement._verdicts import (
    compare,
    described,
    greater,
    mean_and_spread,
    spread,
    with_and_without_chance,
)
from drkm.experiments.section import Claim, Section, Table, Verdict
from drkm.runs.configuration import Configuration, Results

TITLE = "Table 2: where training begins"
#: published mean and standard deviation of IRS and MIG on Cars3D, N = 800
PUBLISHED = {
    "random start": {"irs": (0.843, 0.044), "mig": (0.012, 0.010)},
    "kernel PCA start": {"irs": (0.785, 0.0), "mig": (0.040, 0.0)},
    "β-VAE": {"irs": (0.752, 0.145), "mig": (0.010, 0.011)},
}
#: how far a mean may be from the published one beyond the two standard deviations over seeds
TOLERANCE = {"irs": 0.05, "mig": 0.01}
PAPER_N, DRAW = 800, 0
FIXED, LEARNED = "σ² = 50", "σ² learned"


def configurations(scale: str) -> list[Configuration]:
    """Return the runs of this experiment."""
    sizes = sizes_of(scale)
    return unique(run for runs in groups(sizes).values() for run in runs)


def groups(sizes: Sizes) -> dict[str, list[Configuration]]:
    """Return the lines of the table: name → runs on one draw over seeds, and the same over draws."""
    dataset, n, seeds = sizes.start_dataset, sizes.start_points, range(sizes.seeds)

    def paper(seed: int, init: str, learn: bool, draw: int | None) -> Configuration:
        # What is as in the other experiments is left out, so that those runs are shared.
        more: dict[str, Any] = {} if init == "random" else {"init": init}
        if not learn:
            more["learn_bandwidth"] = False
        return paper_run(sizes, dataset, n, TWO_LAYERS, seed, draw=draw, **more)

    out = {}
    for draw, over in ((DRAW, "seeds"), (None, "draws")):
        for init, name in (("random", "random start"), ("kpca", "kernel PCA start")):
            for learn, width in ((False, FIXED), (True, LEARNED)):
                # A fit without a random start has no seed: two runs show that.
                several = seeds if init == "random" or over == "draws" else range(2)
                out[f"{name}, {width}; over {over}"] = [paper(seed, init, learn, draw) for seed in several]
        out[f"β-VAE; over {over}"] = [beta_vae_run(sizes, dataset, n, seed, draw=draw) for seed in seeds]
        several = seeds if over == "draws" else range(2)
        out[f"drkm defaults; over {over}"] = [
            drkm_run(sizes, dataset, n, TWO_LAYERS, seed, draw=draw) for seed in several
        ]
    return out


def section(results: Results, scale: str) -> Section:
    """Return the table and claims."""
    sizes = sizes_of(scale)
    rows = {name: scored_rows(results, runs) for name, runs in groups(sizes).items()}
    dataset = DATASET_NAMES[sizes.start_dataset]
    text = (
        f"Two layers, s = (10, 5), on {dataset} with N = {sizes.start_points}; published for Cars3D with N = "
        f"{PAPER_N}. The paper's spread is over seeds, so the first lines hold one training draw fixed and vary the "
        "seed; the later ones vary the draw. The caption of the published table says σ² = 50, the text that "
        "bandwidths are learned: both are run. IRS rewards codes with tails; its chance level says how much."
    )
    lines = [
        {"model": name, **_published(name), **summary(group), "IRS above chance": _above(group)}
        for name, group in rows.items()
        if group
    ]
    return Section(
        "table2",
        TITLE,
        text,
        tables=[Table("table2", f"Published (Cars3D, N = {PAPER_N}) and own numbers ({dataset})", lines)],
        claims=claims(rows, sizes),
        settings={"dataset": dataset, "N": sizes.start_points, "seeds": sizes.seeds, "β": 4, "γ": 1},
    )


def _above(rows: Sequence[Row]) -> str:
    return mean_and_spread(values_of(rows, "irs_above"))


def _published(name: str) -> dict[str, str]:
    model, _, over = name.partition("; over ")
    found = PUBLISHED.get(model.removesuffix(f", {FIXED}")) if over == "seeds" else None
    if found is None:
        return {"IRS published": "", "MIG published": ""}
    return {f"{metric.upper()} published": "{:.3f} ± {:.3f}".format(*found[metric]) for metric in ("irs", "mig")}


def claims(rows: dict[str, list[Row]], sizes: Sizes) -> list[Claim]:
    """Return the paper's numbers and statements about the two starts, judged on the runs over seeds."""
    comparable = sizes.start_dataset == "cars3d" and sizes.start_points == PAPER_N
    out = [_number(rows, model, metric, comparable) for model in PUBLISHED for metric in ("irs", "mig")]
    for width in (FIXED, LEARNED):
        out += _starts(rows, width, sizes.start_dataset == "cars3d")
    return [*out, _no_seed(rows), _wide_rival(rows)]


def _number(rows: dict[str, list[Row]], model: str, metric: str, comparable: bool) -> Claim:
    mean, deviation = PUBLISHED[model][metric]
    name = model if model == "β-VAE" else f"{model}, {FIXED}"
    group = rows[f"{name}; over seeds"]
    values = values_of(group, metric)
    text = f"{metric.upper()} of the {name} on Cars3D with N = {PAPER_N}."
    published = f"{mean:.3f} ± {deviation:.3f}"
    near = 2 * max(deviation, spread(values) if len(values) > 1 else 0.0) + TOLERANCE[metric]
    why = f"Holds within {near:.3f} of the published mean: two standard deviations over seeds and {TOLERANCE[metric]}."
    if not comparable or not values:
        why = f"This scale has not the published dataset and N = {PAPER_N}, or the runs are missing."
        return Claim(text, published, described(group, metric), Verdict.UNDECIDED, why)
    verdict = Verdict.HELD if abs(np.mean(values) - mean) <= near else Verdict.FAILED
    return Claim(text, published, described(group, metric), verdict, why)


def _starts(rows: dict[str, list[Row]], width: str, on_cars: bool) -> list[Claim]:
    kpca, random = ((name, rows[f"{name}, {width}; over draws"]) for name in ("kernel PCA start", "random start"))
    rival = "β-VAE", rows["β-VAE; over draws"]
    where = "" if on_cars else " Judged on another dataset than the published one."
    rule = f"over training draws, so that the deterministic start has a spread; holds where it is above 0.{where}"

    def lower_irs(score: str, added: str) -> Claim:
        text = f"The kernel PCA start has a lower IRS than the random start ({width}){added}."
        return compare(text, "" if added else "0.785 against 0.843", random, kpca, score, greater, rule)

    def ahead_of_rival(score: str, added: str) -> Claim:
        text = f"The kernel PCA start is ahead of the β-VAE in IRS ({width}){added}."
        return compare(text, "" if added else "0.785 against 0.752", kpca, rival, score, greater, rule)

    def ahead_in_mig(other: tuple[str, list[Row]], published: str) -> Claim:
        text = f"The kernel PCA start is ahead of the {other[0]} in MIG ({width})."
        return compare(text, published, kpca, other, "mig", greater, rule)

    return [
        *with_and_without_chance(lower_irs),
        *with_and_without_chance(ahead_of_rival),
        ahead_in_mig(random, "0.040 against 0.012"),
        ahead_in_mig(rival, "0.040 against 0.010"),
    ]


def _no_seed(rows: dict[str, list[Row]]) -> Claim:
    names = [f"kernel PCA start, {width}; over seeds" for width in (FIXED, LEARNED)]
    names.append("drkm defaults; over seeds")
    spreads = [spread(values_of(rows[name], metric)) for name in names for metric in ("irs", "mig", "sap")]
    known = [value for value in spreads if not np.isnan(value)]
    verdict = Verdict.UNDECIDED if len(known) < len(spreads) else Verdict.FAILED if max(known) > 0 else Verdict.HELD
    measured = f"largest standard deviation over seeds {max(known):.3g}" if known else "no runs"
    why = "Two fits with different seeds on one draw; holds where all scores are equal to the last bit."
    return Claim("With the kernel PCA start no score depends on a seed.", "± 0.000", measured, verdict, why)


def _wide_rival(rows: dict[str, list[Row]]) -> Claim:
    lines = ("β-VAE; over seeds", f"kernel PCA start, {FIXED}; over draws", f"random start, {FIXED}; over seeds")
    rival, *ours = (spread(values_of(rows[line], "irs")) for line in lines)
    names = ("β-VAE over seeds", "kernel PCA start over draws", "random start over seeds")
    measured = "; ".join(f"{name} {value:.3f}" for name, value in zip(names, (rival, *ours), strict=True))
    known = not np.isnan([rival, *ours]).any()
    verdict = (Verdict.HELD if rival > max(ours) else Verdict.FAILED) if known else Verdict.UNDECIDED
    why = "Standard deviations of IRS; holds where that of the β-VAE is the largest."
    return Claim("The IRS of the β-VAE varies most.", "0.145 against 0.044 and 0", measured, verdict, why)
