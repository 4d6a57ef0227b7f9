"""Our own: the number of training images at which the β-VAE catches up, if it does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, ResultTable, Verdict
from drkm.experiments.study import charts, claims, tables
from drkm.experiments.study.groups import Group
from drkm.experiments.study.rows import by_points, by_value, chosen, values_of
from drkm.experiments.study.scales import BETA, DATASET_NAMES, SCORE_NAMES, SCORES, StudySizes
from drkm.experiments.study.study import Study

FAMILIES = ("drkm", "beta-vae")


def catching_up(rows: list[Row], sizes: StudySizes) -> ResultTable:
    """Return for every dataset and score the smallest N from which on the mean of the β-VAE is not below ours."""
    lines = [
        {"dataset": DATASET_NAMES[dataset], **{SCORE_NAMES[score]: _caught_up(here, score) for score in SCORES}}
        for dataset, here in by_value(rows, "dataset").items()
    ]
    return ResultTable("catching-up", "N at which the β-VAE catches up", lines)


def _caught_up(rows: list[Row], score: str) -> str:
    pairs = {
        n: [values_of(chosen(here, family=name), score) for name in FAMILIES] for n, here in by_points(rows).items()
    }
    ahead = {n: bool(np.mean(theirs) >= np.mean(ours)) for n, (ours, theirs) in pairs.items() if ours and theirs}
    if not ahead:
        return ""
    # Behind at one N means not to have caught up at any smaller one.
    behind = [n for n, is_ahead in ahead.items() if not is_ahead]
    from_there = [n for n in ahead if not behind or n > behind[-1]]
    return f"N = {from_there[0]}" if from_there else f"not by N = {list(ahead)[-1]}"


def ahead_and_overtaken(score: str) -> Callable[[list[Row], StudySizes], list[Claim]]:
    """Return whether ours is ahead at the smallest N that was run, and behind at the largest."""

    def judge(rows: list[Row], sizes: StudySizes) -> list[Claim]:
        run = sorted({row["n"] for row in rows})
        if not run:
            text = f"With few images our defaults are ahead of the β-VAE in {SCORE_NAMES[score]}."
            return [Claim(text, "", "no runs", Verdict.UNDECIDED, "No runs.")]
        few, many = (
            [{"family": name, "n": n} for name in order]
            for n, order in ((run[0], FAMILIES), (run[-1], reversed(FAMILIES)))
        )
        texts = {
            f"With {run[0]} images our defaults are ahead of the β-VAE in {{score}}.": few,
            f"With {run[-1]} images the β-VAE has overtaken our defaults in {{score}}.": many,
        }
        statements = [
            claims.Statement(text=text, rule=claims.on_most_datasets(*pair), score=score)
            for text, pair in texts.items()
        ]
        return [claim for said in statements for claim in said(rows, sizes)]

    return judge


EXPERIMENT = Study(
    name="sample_efficiency",
    title="Sample efficiency",
    place=13,
    text=lambda sizes: (
        f"Our defaults, s = (10, 5), against the β-VAE with β = {BETA:g}, on N = {sizes.listed('points')} "
        "training images. The β-VAE has caught up at the smallest N from which on its mean score is not below ours any "
        "more. The β-VAE stops by held-out images"
        + (f" or after {sizes.max_steps} steps, which is early." if sizes.max_steps else ".")
    ),
    groups=[Group(family=name) for name in FAMILIES],
    tables=[catching_up, tables.scores("sample-efficiency", "dataset", "family", "n")],
    charts=[
        charts.Lines(
            name="sample-efficiency",
            caption="Mean score by number of training images, band of one standard error, chance dotted.",
            kinds=[charts.family(name, charts.points) for name in FAMILIES],
            xlabel="training images N",
        )
    ],
    claims=[ahead_and_overtaken(score) for score in SCORES],
    settings={"N": "points", "β": BETA, "seeds": "seeds"},
)
