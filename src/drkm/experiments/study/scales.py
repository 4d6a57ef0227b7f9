"""The sizes of the disentanglement experiments at each scale, and the names in their tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drkm.datasets import list_datasets
from drkm.experiments.settings import Seeds
from drkm.runs.configuration import check_scale

Layers = Sequence[int]

#: the architectures of the paper by number of layers
ARCHITECTURES: dict[int, tuple[int, ...]] = {1: (10,), 2: (10, 5), 3: (2, 2, 6)}
ONE_LAYER, TWO_LAYERS = ARCHITECTURES[1], ARCHITECTURES[2]
#: names of the families in figures
FAMILY_NAMES = {
    "paper": "as published",
    "drkm": "drkm defaults",
    "kpca": "kernel PCA",
    "kpca-centred": "kernel PCA, centred",
    "beta-vae": "β-VAE",
}
DATASET_NAMES = {source.name: source.title for info in list_datasets() for source in info.sources}
METRIC_NAMES = {"irs": "IRS", "mig": "MIG", "sap": "SAP"}
SCORE_NAMES = {
    **METRIC_NAMES,
    **{f"{name}_above": f"{title} above chance" for name, title in METRIC_NAMES.items()},
    "accuracy": "accuracy of a linear classifier",
}
#: the scores of our own questions: IRS means little without its chance level
SCORES = ("irs_above", "mig", "sap")
#: the datasets of the paper
FOUR = ("cars3d", "smallnorb", "dsprites", "noisy_dsprites")


@dataclass(frozen=True, kw_only=True)
class StudySizes:
    """One scale."""

    datasets: tuple[str, ...] = FOUR
    #: training images N
    points: tuple[int, ...]
    #: hyperparameters of the paper's recipe and of the β-VAE
    gammas: tuple[float, ...] = (0.1, 1.0, 5.0)
    betas: tuple[float, ...] = (2.0, 4.0, 6.0)
    seeds: int
    #: unseen images that are scored
    evaluation: int
    #: N of Table 2, and of our own experiments at one N
    start_points: int
    #: dataset of Table 2
    start_dataset: str = "cars3d"
    #: resamples of one draw, for the stability of components
    resamples: int
    #: seeds and draws of our own study of variance: standard deviations need more than means
    spread_seeds: int = 10
    #: datasets on which bandwidths and axes are chosen: never those of Table 2
    selection_datasets: tuple[str, ...] = ("sprites", "smallnorb")
    #: σ² of layer 1 that are tried there, as multiples of the median rule
    widths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    #: N of the experiment on the number of components
    components_points: int = 100
    #: whether every N and architecture is run at every γ, and every N at every β; else only one of them varies
    every_gamma: bool = True
    #: most steps of a β-VAE; by default its own
    max_steps: int | None = None
    #: family of models → its number of seeds, if it differs
    seeds_of: Mapping[str, int] = field(default_factory=dict)
    #: parameters that a variant sets, see `drkm.experiments.study.parameters`
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start_name(self) -> str:
        """The name of the dataset of Table 2 in tables."""
        return DATASET_NAMES[self.start_dataset]

    def every(self, name: str) -> tuple[Any, ...]:
        """Return an attribute as a tuple, even if it is a single value."""
        found = getattr(self, name)
        return found if isinstance(found, tuple) else (found,)

    def listed(self, name: str) -> str:
        """Return an attribute as text: 50, 100, 200."""
        return ", ".join(map(str, self.every(name)))


SIZES = {
    "quick": StudySizes(
        datasets=("sprites",),
        points=(50, 100, 200),
        seeds=2,
        evaluation=1000,
        start_points=100,
        start_dataset="sprites",
        resamples=4,
        spread_seeds=2,
        selection_datasets=("sprites",),
        widths=(0.5, 1.0, 2.0),
        every_gamma=False,
        max_steps=400,
    ),
    "medium": StudySizes(
        points=(50, 100, 200, 400),
        seeds=10,
        evaluation=2000,
        start_points=400,
        resamples=5,
        seeds_of={"beta-vae": 5},
    ),
    "paper": StudySizes(
        points=(50, 100, 200, 400, 800),
        gammas=(0.01, 0.1, 1.0, 5.0, 25.0),
        betas=(2.0, 3.0, 4.0, 5.0, 6.0),
        seeds=5,
        evaluation=4000,
        start_points=800,
        resamples=10,
    ),
}
#: default γ and β: λ = η = 1, and the β of Table 2
GAMMA, BETA = 1.0, 4.0
#: family of models → its hyperparameter: name, default value, and the attribute of a scale with all values. On the
#: manifold γ has no effect, so our defaults have none; their σ² of layer 1 is given only if it is not the default.
HYPERPARAMETER: dict[str, tuple[str, float | None, str]] = {
    "drkm": ("width", None, "widths"),
    "paper": ("gamma", GAMMA, "gammas"),
    "beta-vae": ("beta", BETA, "betas"),
}


def sizes_of(scale: str, seeds: Seeds | None, own: Mapping[str, Any], changes: Mapping[str, Any]) -> StudySizes:
    """Return a scale by name, changed by `seeds`, by a study's `own` sizes and at least its seeds, and by a variant."""
    sizes = SIZES[check_scale(scale)]
    if seeds is not None:
        sizes = replace(sizes, seeds=seeds.number, spread_seeds=seeds.number, seeds_of=seeds.of)
    least = own.get("seeds", 0)
    of = {family: max(number, least) for family, number in sizes.seeds_of.items()}
    grids = {grid: (changes[name],) for name, _, grid in HYPERPARAMETER.values() if name in changes}
    return replace(sizes, **{**own, "seeds": max(sizes.seeds, least), "seeds_of": of, "changes": changes, **grids})


def label(layers: Layers) -> str:
    """Return an architecture as text: (10, 5)."""
    return "(" + ", ".join(map(str, layers)) + ")"
