"""Our own: what the deep layer adds when the number of components is the same."""

from __future__ import annotations

from drkm.experiments.study import Group, Study, Table, charts, claims, kernel_pca
from drkm.experiments.study.scales import SCORES, label

#: ten components in all, in one, two and three layers
STACKS = ((10,), (5, 5), (4, 3, 3))
FAMILIES = ("paper", "drkm")

EXPERIMENT = Study(
    name="deep_layer",
    title="What the deep layer adds at equal components",
    place=14,
    text=lambda sizes: (
        f"Ten components in all, in one layer (10), two (5, 5) or three (4, 3, 3), N = {sizes.start_points}, all ten "
        "codes scored. The comparison of the paper has 10, 15 and 10 components, of which different layers are "
        "scored, so that depth and number of components change together. One layer of our defaults is kernel PCA."
    ),
    groups=[
        *(Group(family=name, stacks=STACKS, at="start_points") for name in FAMILIES),
        *kernel_pca(at="start_points")[1:],
    ],
    tables=[Table(name="deep-layer", by=("dataset", "family", "layers"))],
    charts=[
        charts.Boxes(
            name="deep-layer",
            caption="Scores of ten components in one, two and three layers.",
            kinds=[
                *(charts.family(name, charts.stacks(STACKS)) for name in FAMILIES),
                charts.family("kpca-centred", charts.stacks(STACKS[:1])),
            ],
            xlabel="components by layer",
            together=True,
        )
    ],
    claims=claims.for_families(
        FAMILIES,
        lambda rows, family: rows,
        *claims.for_scores(
            SCORES,
            *(
                claims.Statement(
                    text=f"{label(deep)} is better than one layer of ten in {{score}} ({{family}}).",
                    rule=claims.on_most_datasets(
                        {"family": claims.OWN, "layers": deep}, {"family": claims.OWN, "layers": STACKS[0]}
                    ),
                )
                for deep in STACKS[1:]
            ),
        ),
    ),
    settings={"N": "start_points", "γ": 1, "seeds": "seeds"},
)
