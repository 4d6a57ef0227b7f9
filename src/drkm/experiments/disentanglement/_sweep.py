"""What the disentanglement experiments run at each scale, and the runs by name, so that experiments share them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from drkm.datasets import list_datasets
from drkm.runs.configuration import Configuration, Results, check_scale

Row = dict[str, Any]
Layers = Sequence[int]

#: the architectures of the paper by number of layers
ARCHITECTURES: dict[int, tuple[int, ...]] = {1: (10,), 2: (10, 5), 3: (2, 2, 6)}
TWO_LAYERS = ARCHITECTURES[2]
#: what the figures call the families
FAMILY_NAMES = {"paper": "as published", "drkm": "drkm defaults", "beta-vae": "β-VAE"}
DATASET_NAMES = {source.name: source.title for info in list_datasets() for source in info.sources}
METRIC_NAMES = {"irs": "IRS", "mig": "MIG", "sap": "SAP"}


@dataclass(frozen=True)
class Sizes:
    """One scale.

    Attributes
    ----------
    datasets : tuple of str
    points : tuple of int
        Training images N.
    gammas, betas : tuple of float
        Hyperparameters of the paper's recipe and of the β-VAE.
    seeds : int
    evaluation : int
        Unseen images that are scored.
    start_points : int
        N of Table 2, and of our own experiments at one N.
    start_dataset : str
        Dataset of Table 2.
    resamples : int
        Of one draw, for the stability of components.
    spread_seeds : int
        Seeds and draws of our own study of variance: standard deviations need more than means.
    components_points : int
        N of the experiment on the number of components.
    every_gamma : bool
        Whether every N and architecture is run at every γ, and every N at every β; else one N or one γ or β varies.
    max_steps : int, optional
        Most steps of a β-VAE; by default its own.
    """

    datasets: tuple[str, ...]
    points: tuple[int, ...]
    gammas: tuple[float, ...]
    betas: tuple[float, ...]
    seeds: int
    evaluation: int
    start_points: int
    start_dataset: str
    resamples: int
    spread_seeds: int
    components_points: int = 100
    every_gamma: bool = True
    max_steps: int | None = None


FOUR = ("cars3d", "smallnorb", "dsprites", "noisy_dsprites")
SIZES = {
    "quick": Sizes(
        datasets=("sprites",),
        points=(50, 100, 200),
        gammas=(0.1, 1.0, 5.0),
        betas=(2.0, 4.0, 6.0),
        seeds=2,
        evaluation=1000,
        start_points=100,
        start_dataset="sprites",
        resamples=4,
        spread_seeds=2,
        every_gamma=False,
        max_steps=400,
    ),
    "medium": Sizes(
        datasets=FOUR,
        points=(50, 100, 200, 400),
        gammas=(0.1, 1.0, 5.0),
        betas=(2.0, 4.0, 6.0),
        seeds=3,
        evaluation=2000,
        start_points=400,
        start_dataset="cars3d",
        resamples=5,
        spread_seeds=5,
    ),
    "paper": Sizes(
        datasets=FOUR,
        points=(50, 100, 200, 400, 800),
        gammas=(0.01, 0.1, 1.0, 5.0, 25.0),
        betas=(2.0, 3.0, 4.0, 5.0, 6.0),
        seeds=5,
        evaluation=4000,
        start_points=800,
        start_dataset="cars3d",
        resamples=10,
        spread_seeds=10,
    ),
}
#: γ and β where nothing is said about them: λ = η = 1, and the β of Table 2
GAMMA, BETA = 1.0, 4.0


def sizes_of(scale: str) -> Sizes:
    """Return a scale by name."""
    return SIZES[check_scale(scale)]


def label(layers: Layers) -> str:
    """Return an architecture as it is written: (10, 5)."""
    return "(" + ", ".join(map(str, layers)) + ")"


def _run(seed: int, draw: int | None, **parameters: Any) -> Configuration:
    # What is at its default is left out, so that the same run has one configuration whoever asks for it.
    if draw is not None and draw != seed:
        parameters["draw"] = draw
    return Configuration("disentangle", parameters, seed)


def drkm_run(
    sizes: Sizes, dataset: str, n: int, layers: Layers, seed: int, *, draw: int | None = None, **more: Any
) -> Configuration:
    """Return a run of our defaults; γ is no parameter of it, because on the manifold it changes nothing."""
    return _run(
        seed, draw, dataset=dataset, n=n, evaluation=sizes.evaluation, family="drkm", layers=list(layers), **more
    )


def paper_run(
    sizes: Sizes,
    dataset: str,
    n: int,
    layers: Layers,
    seed: int,
    *,
    gamma: float = GAMMA,
    draw: int | None = None,
    **more: Any,
) -> Configuration:
    """Return a run of the paper's recipe."""
    run = {"dataset": dataset, "n": n, "evaluation": sizes.evaluation, "family": "paper", "layers": list(layers)}
    return _run(seed, draw, **run, gamma=float(gamma), **more)


def beta_vae_run(
    sizes: Sizes, dataset: str, n: int, seed: int, *, beta: float = BETA, draw: int | None = None
) -> Configuration:
    """Return a run of the β-VAE; the device is no parameter of it, the result names it."""
    more = {} if sizes.max_steps is None else {"max_steps": sizes.max_steps}
    run = {"dataset": dataset, "n": n, "evaluation": sizes.evaluation, "family": "beta-vae", "beta": float(beta)}
    return _run(seed, draw, **run, **more)


def gamma_grid(sizes: Sizes, layers: Layers) -> list[tuple[int, float]]:
    """Return the (N, γ) at which an architecture of the paper's recipe is run."""
    if sizes.every_gamma or tuple(layers) == TWO_LAYERS:
        return [(n, gamma) for n in sizes.points for gamma in sizes.gammas]
    return [(n, GAMMA) for n in sizes.points]


def beta_grid(sizes: Sizes) -> list[tuple[int, float]]:
    """Return the (N, β) at which the β-VAE is run."""
    if sizes.every_gamma:
        return [(n, beta) for n in sizes.points for beta in sizes.betas]
    at_one_n = [(sizes.components_points, beta) for beta in sizes.betas if beta != BETA]
    return [(n, BETA) for n in sizes.points] + at_one_n


def paper_runs(sizes: Sizes, layers: Layers) -> list[Configuration]:
    """Return an architecture of the paper's recipe at every dataset, N, γ and seed."""
    return [
        paper_run(sizes, dataset, n, layers, seed, gamma=gamma)
        for dataset in sizes.datasets
        for n, gamma in gamma_grid(sizes, layers)
        for seed in range(sizes.seeds)
    ]


def drkm_runs(sizes: Sizes, layers: Layers) -> list[Configuration]:
    """Return an architecture of our defaults at every dataset, N and draw."""
    return [
        drkm_run(sizes, dataset, n, layers, seed)
        for dataset in sizes.datasets
        for n in sizes.points
        for seed in range(sizes.seeds)
    ]


def runs_at_one_n(sizes: Sizes, n: int, stacks: Iterable[Layers]) -> list[Configuration]:
    """Return architectures of the paper's recipe and of our defaults at one N: every dataset and seed."""
    return [
        run(sizes, dataset, n, layers, seed)
        for run in (paper_run, drkm_run)
        for dataset in sizes.datasets
        for layers in stacks
        for seed in range(sizes.seeds)
    ]


def beta_vae_runs(sizes: Sizes) -> list[Configuration]:
    """Return the β-VAE at every dataset, N, β and seed."""
    return [
        beta_vae_run(sizes, dataset, n, seed, beta=beta)
        for dataset in sizes.datasets
        for n, beta in beta_grid(sizes)
        for seed in range(sizes.seeds)
    ]


def unique(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Return configurations without repetition, in order."""
    return list(dict.fromkeys(configurations))


def scored_rows(results: Results, configurations: Iterable[Configuration]) -> list[Row]:
    """Return finished runs as rows, each score also above its chance level; layers as a tuple."""
    return [
        {**with_scores_above_chance(row), "layers": tuple(row.get("layers", ()))}
        for row in results.rows(configurations)
    ]


def with_scores_above_chance(row: Row) -> Row:
    """Return a row with the difference between each score and its chance level, None where one is missing."""
    out = dict(row)
    for name in METRIC_NAMES:
        score, chance = row.get(name), row.get(f"{name}_chance")
        out[f"{name}_above"] = None if score is None or chance is None else score - chance
    return out


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows that have these values; a row without such a key is not among them."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def by_points(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return rows by number of training images."""
    return {n: chosen(rows, n=n) for n in sorted({row["n"] for row in rows})}


def by_layers(rows: Sequence[Row], stacks: Iterable[Layers]) -> dict[str, list[Row]]:
    """Return rows by architecture, under its name; those of one that was not run are none."""
    return {label(layers): chosen(rows, layers=layers) for layers in stacks}


def at_common_points(rows: Sequence[Row], *families: str) -> list[Row]:
    """Return the rows at those N of each dataset at which all of the families were run.

    Models are compared there: runs that are missing must not tilt a comparison over several N.
    """
    run = {(row["dataset"], row["n"], row["family"]) for row in rows}
    return [row for row in rows if all((row["dataset"], row["n"], family) in run for family in families)]


def values_of(rows: Iterable[Row], name: str) -> list[float]:
    """Return one score of rows, without those that have none."""
    return [float(row[name]) for row in rows if row.get(name) is not None]
