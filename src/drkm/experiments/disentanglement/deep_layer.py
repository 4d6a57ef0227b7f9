"""Our own: what the deep layer adds when the number of components is the same."""

from __future__ import annotations

from drkm.experiments.disentanglement._charts import Boxes, family, stacks
from drkm.experiments.disentanglement._groups import Group
from drkm.experiments.disentanglement._scales import SCORES, label
from drkm.experiments.disentanglement._statements import OWN, Statement, for_families, for_scores, on_most_datasets
from drkm.experiments.disentanglement._study import Study
from drkm.experiments.disentanglement._tables import scores

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
    groups=[Group(family=name, stacks=STACKS, at="start_points") for name in FAMILIES],
    tables=[scores("deep-layer", "dataset", "family", "layers")],
    charts=[
        Boxes(
            name="deep-layer",
            caption="Scores of ten components in one, two and three layers.",
            kinds=[family(name, stacks(STACKS)) for name in FAMILIES],
            xlabel="components by layer",
            together=True,
        )
    ],
    claims=for_families(
        FAMILIES,
        lambda rows, family: rows,
        *for_scores(
            SCORES,
            *(
                Statement(
                    text=f"{label(deep)} is better than one layer of ten in {{score}} ({{family}}).",
                    rule=on_most_datasets({"family": OWN, "layers": deep}, {"family": OWN, "layers": STACKS[0]}),
                )
                for deep in STACKS[1:]
            ),
        ),
    ),
    settings={"N": "start_points", "γ": 1, "seeds": "seeds"},
)
