"""Our own experiment: what the deep layer adds at the same total number of components."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from drkm.experiments.experiment import Row
from drkm.experiments.study import Study, StudySizes, Table, charts, claims, families
from drkm.experiments.study.rows import chosen
from drkm.experiments.study.scales import FAMILY_NAMES, SCORE_NAMES, SCORES, label

#: ten components in all, in one, two and three layers
STACKS = ((10,), (5, 5), (4, 3, 3))
FAMILIES = ("paper", "drkm")


def _claims(rows: list[Row], sizes: StudySizes) -> Iterator[claims.Claim]:
    for family, score, deep in product(FAMILIES, SCORES, STACKS[1:]):
        text = f"{label(deep)} is better than one layer of ten in {SCORE_NAMES[score]} ({FAMILY_NAMES[family]})."
        own = chosen(rows, family=family)
        yield claims.claim(text, rows, claims.on_most_datasets(own, {"layers": deep}, {"layers": STACKS[0]}, score))


EXPERIMENT = Study(
    name="deep_layer",
    title="What the deep layer adds at equal components",
    place=14,
    text=lambda sizes: (
        f"Ten components in all, in one layer (10), two (5, 5) or three (4, 3, 3), N = {sizes.start_points}, all ten "
        "codes scored. The comparison of the paper has 10, 15 and 10 components, of which different layers are "
        "scored, so that depth and number of components change together. One layer of our defaults is kernel PCA."
    ),
    groups=families(*FAMILIES, "kpca-centred", stacks=STACKS, at="start_points"),
    tables=Table(name="deep-layer", by=("dataset", "family", "layers")),
    figures=charts.by_dataset(
        charts.boxes_together,
        "deep-layer",
        "Scores of ten components in one, two and three layers.",
        charts.families_by_stack(STACKS, *FAMILIES, "kpca-centred"),
        xlabel="components by layer",
    ),
    claims=_claims,
    settings={"N": "start_points", "γ": 1, "seeds": "seeds"},
)
