"""Groups of runs as data: models, numbers of images, hyperparameters and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from drkm.experiments.experiment import Row
from drkm.experiments.study.parameters import changed
from drkm.experiments.study.rows import scored
from drkm.experiments.study.scales import FAMILY_NAMES, HYPERPARAMETER, ONE_LAYER, TWO_LAYERS, Layers, StudySizes
from drkm.runs.configuration import Configuration, Results

#: family of kernel PCA in tables and figures → the equivalent options of our model
KERNEL_PCA: dict[str, dict[str, Any]] = {"kpca": {}, "kpca-centred": {"center": True}}
#: families of models that have no layers
FLAT = ("beta-vae", "random")


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one model on every dataset of a scale. Groups with the same run share it."""

    #: of models, see `drkm.experiments.disentanglement._models.train_and_encode`; "" if the task trains several
    family: str
    #: components per layer, for families with layers
    stacks: tuple[Layers, ...] = (TWO_LAYERS,)
    #: attribute of a scale with one or several numbers of training images
    at: str = "points"
    #: which γ or β are run: "one", the default of `HYPERPARAMETER`; "grid", those of the scale at each N; "all"
    hyperparameter: str = "one"
    #: their number, or the attribute of a scale with this number
    seeds: str | int = "seeds"
    #: weights of the layers of our model, if it has several; None for the paper's, or if options give them
    eta: str | None = "auto"
    #: the training draw of all seeds; by default each seed has its own
    draw: int | None = None
    #: attribute of a scale with the names of datasets
    datasets: str = "datasets"
    #: sets of further parameters, each of which is run
    options: tuple[Mapping[str, Any], ...] = ({},)
    #: further parameters, each a number or an attribute of a scale
    settings: Mapping[str, str | int] = field(default_factory=dict)
    task: str = "disentangle"
    #: whether a β-VAE is left out at a scale that limits its steps
    long: bool = False
    #: values added to its rows
    tags: Mapping[str, Any] = field(default_factory=dict)
    #: a finished run → its rows
    rows: Callable[[Row], Iterable[Row]] = lambda row: [scored(row)]

    def configurations(self, sizes: StudySizes) -> list[Configuration]:
        """Return the runs at one scale."""
        if self.long and self.family == "beta-vae" and sizes.max_steps:
            return []
        seeds = self.seeds
        if isinstance(seeds, str):
            seeds = sizes.seeds_of.get(self.family, getattr(sizes, seeds))
        runs = (
            self._run(sizes, {"dataset": dataset, "n": n, **self._model(sizes, layers, value, options)}, seed)
            for dataset in sizes.every(self.datasets)
            for layers in self.stacks
            for options in self.options
            for n, value in self._places(sizes, layers)
            for seed in range(seeds)
        )
        # Runs that differ only in a parameter that the variant sets are the same.
        return list(dict.fromkeys(runs))

    def found(self, results: Results, sizes: StudySizes) -> Iterator[Row]:
        """Yield the rows of the finished runs."""
        for row in results.rows(self.configurations(sizes)):
            for made in self.rows(row):
                yield {**made, **self.tags}

    def _run(self, sizes: StudySizes, parameters: Mapping[str, Any], seed: int) -> Configuration:
        settings = {**self.settings, "evaluation": self.settings.get("evaluation", "evaluation")}
        shared = {name: getattr(sizes, value) if isinstance(value, str) else value for name, value in settings.items()}
        # Defaults are omitted, so that a run has the same configuration in every experiment.
        if self.draw is not None and self.draw != seed:
            shared["draw"] = self.draw
        return Configuration(self.task, {**parameters, **shared}, seed)

    def _model(
        self, sizes: StudySizes, layers: Layers, value: float | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        model: dict[str, Any] = {"family": self.family} if self.family else {}
        if self.family not in FLAT:
            model["layers"] = list(layers)
        if value is not None:
            model[HYPERPARAMETER[self.family][0]] = value
        if self.family == "beta-vae" and sizes.max_steps is not None:
            model["max_steps"] = sizes.max_steps
        if self.family in ("drkm", "") and len(layers) > 1 and self.eta and "deep_eta" not in options:
            model["eta"] = self.eta
        return changed({**model, **options}, options, sizes.changes)

    def _places(self, sizes: StudySizes, layers: Layers) -> list[tuple[int, float | None]]:
        """Return the pairs (N, γ or β) that are run."""
        points = sizes.every(self.at)
        if self.family not in HYPERPARAMETER:
            return [(n, None) for n in points]
        _, usual, values = HYPERPARAMETER[self.family]
        every: tuple[float, ...] = getattr(sizes, values)
        if self.hyperparameter == "all":
            return list(product(points, every))
        if self.hyperparameter == "grid" and usual is not None:
            if sizes.every_gamma or (self.family == "paper" and tuple(layers) == TWO_LAYERS):
                return list(product(points, every))
            if self.family == "beta-vae":
                others = [value for value in every if value != usual]
                return [*((n, usual) for n in points), *((sizes.components_points, value) for value in others)]
        return [(n, usual) for n in points]


def named_models(models: Mapping[str, tuple[str, Layers, Mapping[str, Any]]], **common: Any) -> list[Group]:
    """Return one group for each name of a model: its family, its components per layer, and its options."""
    return [
        Group(family=family, stacks=(layers,), options=(options,), tags={"model": name}, **common)
        for name, (family, layers, options) in models.items()
    ]


def families(*names: str, tags: Mapping[str, Any] | None = None, **common: Any) -> list[Group]:
    """Return one group for each family of `FAMILY_NAMES`; kernel PCA has one layer, whatever the others have."""
    return [
        Group(
            **{"family": name, **common, **_kernel_pca(name)},
            tags={"family": name, "model": FAMILY_NAMES[name], **(tags or {})},
        )
        for name in names
    ]


def _kernel_pca(name: str) -> dict[str, Any]:
    """Return kernel PCA as our model: one layer with as many components as are scored; nothing for other families."""
    if name not in KERNEL_PCA:
        return {}
    return {"family": "drkm", "stacks": (ONE_LAYER,), "options": (KERNEL_PCA[name],)}
