"""Our own experiment: the number of training images at which the β-VAE catches up, if it does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.study import Study, StudySizes, Table, charts, claims, families, tables
from drkm.experiments.study.groups import KERNEL_PCA
from drkm.experiments.study.rows import by_points, by_value, chosen, values_of
from drkm.experiments.study.scales import BETA, SCORE_NAMES, SCORES

FAMILIES = ("drkm", "beta-vae")


def _caught_up(rows: list[Row], score: str) -> str:
    pairs = {
        n: [values_of(chosen(here, family=name), score) for name in FAMILIES] for n, here in by_points(rows).items()
    }
    ahead = {n: bool(np.mean(theirs) >= np.mean(ours)) for n, (ours, theirs) in pairs.items() if ours and theirs}
    if not ahead:
        return ""
    # A model that is behind at one N has not caught up at any smaller N.
    behind = [n for n, is_ahead in ahead.items() if not is_ahead]
    from_there = [n for n in ahead if not behind or n > behind[-1]]
    return f"N = {from_there[0]}" if from_there else f"not by N = {list(ahead)[-1]}"


#: the N from which the mean of the β-VAE stays at or above ours, for every dataset and score
CATCHING_UP = Table(
    name="catching-up",
    by=("dataset",),
    caption="N at which the β-VAE catches up",
    cells=lambda rows: {SCORE_NAMES[score]: _caught_up(rows, score) for score in SCORES},
)


def _claims(rows: list[Row], sizes: StudySizes) -> Iterator[claims.Claim]:
    ours, theirs = ({"family": name} for name in FAMILIES)
    fewest, most = min((row["n"] for row in rows), default="few"), max((row["n"] for row in rows), default="many")
    for score in SCORES:
        text = f"With {fewest} images our defaults are ahead of the β-VAE in {SCORE_NAMES[score]}."
        yield claims.claim(text, rows, claims.on_most_datasets(_at_end(rows, 0), ours, theirs, score))
        text = f"With {most} images the β-VAE has overtaken our defaults in {SCORE_NAMES[score]}."
        yield claims.claim(text, rows, claims.on_most_datasets(_at_end(rows, -1), theirs, ours, score))


def _at_end(rows: list[Row], end: int) -> list[Row]:
    """Return the rows with the fewest training images of each dataset (0), or with the most (-1)."""
    return [row for here in by_value(rows, "dataset").values() for row in list(by_points(here).values())[end]]


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
    groups=families(*FAMILIES, *KERNEL_PCA),
    tables=tables.several(CATCHING_UP, Table(name="sample-efficiency", by=("dataset", "family", "n"))),
    figures=charts.by_dataset(
        charts.lines,
        "sample-efficiency",
        "Mean score by number of training images, band of one standard error, chance dotted.",
        charts.families_by_points(*FAMILIES, *KERNEL_PCA),
        xlabel="training images N",
    ),
    claims=_claims,
    settings={"N": "points", "β": BETA, "seeds": "seeds"},
)
