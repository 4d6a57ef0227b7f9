"""Our own: the number of training images at which the β-VAE catches up, if it does."""

from __future__ import annotations

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.study import Group, Study, Table, charts, claims, kernel_pca
from drkm.experiments.study.groups import KERNEL_PCA
from drkm.experiments.study.rows import by_points, chosen, values_of
from drkm.experiments.study.scales import BETA, SCORE_NAMES, SCORES

FAMILIES = ("drkm", "beta-vae")


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


#: the smallest N from which on the mean of the β-VAE is not below ours, for every dataset and score
CATCHING_UP = Table(
    name="catching-up",
    by=("dataset",),
    caption="N at which the β-VAE catches up",
    cells=lambda rows: {SCORE_NAMES[score]: _caught_up(rows, score) for score in SCORES},
)


def _ahead(first: str, second: str, n: str) -> claims.Cases:
    return claims.on_most_datasets({"family": first, "n": n}, {"family": second, "n": n})


EXPERIMENT = Study(
    name="sample_efficiency",
    title="Sample efficiency",
    place=13,
    text=lambda sizes: (
        f"Our defaults, s = (10, 5), and kernel PCA against the β-VAE with β = {BETA:g}, on N = "
        f"{sizes.listed('points')} training images. The β-VAE has caught up at the smallest N from which on its mean "
        "score is not below ours any more. The β-VAE stops by held-out images"
        + (f" or after {sizes.max_steps} steps, which is early." if sizes.max_steps else ".")
    ),
    groups=[*(Group(family=name) for name in FAMILIES), *kernel_pca()],
    tables=[CATCHING_UP, Table(name="sample-efficiency", by=("dataset", "family", "n"))],
    charts=[
        charts.Lines(
            name="sample-efficiency",
            caption="Mean score by number of training images, band of one standard error, chance dotted.",
            kinds=[charts.family(name, charts.points) for name in (*FAMILIES, *KERNEL_PCA)],
            xlabel="training images N",
        )
    ],
    claims=claims.for_scores(
        SCORES,
        claims.Statement(
            text="With {fewest} images our defaults are ahead of the β-VAE in {score}.",
            rule=_ahead("drkm", "beta-vae", claims.FEWEST),
        ),
        claims.Statement(
            text="With {most} images the β-VAE has overtaken our defaults in {score}.",
            rule=_ahead("beta-vae", "drkm", claims.MOST),
        ),
    ),
    settings={"N": "points", "β": BETA, "seeds": "seeds"},
)
