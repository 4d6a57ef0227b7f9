"""The options of fit that are parameters of the estimator, and the estimator that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options

if TYPE_CHECKING:
    from drkm import ConstrDRKM
    from drkm.training.checkpoint import Checkpoint

KERNELS = options.members("kernels")
SOLVERS = ["auto", *options.members("solvers")]

_of_model: Callable[..., Any] = partial(
    typer.Option, rich_help_panel="The model (one value, or one per layer with commas)"
)
_of_training: Callable[..., Any] = partial(typer.Option, rich_help_panel="Training")


def _named(option: Callable[..., Any], help: str, *names: str, metavar: str = "NAME") -> Any:
    """Return an option whose values are names, which a shell can complete."""
    return option(metavar=metavar, help=help, autocompletion=options.completed(*names))


@dataclass(frozen=True)
class ModelOptions:
    """What is fitted, as the words of the command line."""

    components: Annotated[
        str, _of_model("--components", "-c", metavar="N[,N…]", help="Number of components of each layer.")
    ] = "10,5"
    kernel: Annotated[str, _named(_of_model, f"{', '.join(KERNELS)}.", *KERNELS, metavar="NAME[,…]")] = "rbf"
    sigma2: Annotated[
        str,
        _of_model(
            metavar="VALUE[,…]",
            help="Bandwidth σ² of rbf, laplacian and matern: a number, median (layer 1), scale, or auto, "
            "which is median in layer 1 and scale above.",
        ),
    ] = "auto"
    eta: Annotated[
        str,
        _of_model(
            metavar="NUMBER[,…]",
            help="Weight 1/η of each layer; auto keeps deep layers from drowning those below, 1 is the paper's choice.",
        ),
    ] = "auto"
    center: Annotated[bool, _of_model("--center", help="Centre every layer in its feature space.")] = False
    axes: Annotated[
        str, _named(_of_model, "Reported basis: ritz, varimax, ica or none.", "ritz", "varimax", "ica", "none")
    ] = "ritz"
    learn_bandwidth: Annotated[
        bool, _of_model("--learn-bandwidth", help="Minimise over σ² too, as the paper does.")
    ] = False

    anomalies: Annotated[
        bool,
        _of_model(
            "--anomalies",
            help="One layer whose components, bandwidth and weights of components are chosen for encode --anomaly.",
        ),
    ] = False

    def parameters(self) -> dict[str, Any]:
        """Return them as the estimator takes them."""
        widths = [_number_or_word(word) for word in options.words_of(self.sigma2)]
        return {
            "n_components": tuple(options.numbers("components", self.components, int)),
            "kernel": _one_or_several(options.words_of(self.kernel)),
            "sigma2": _one_or_several(widths),
            "eta": self.eta if self.eta == "auto" else _one_or_several(options.numbers("eta", self.eta, float)),
            "center": self.center,
            "axes": None if self.axes.lower() == "none" else self.axes,
            "learn_bandwidth": self.learn_bandwidth,
        }


@dataclass(frozen=True)
class TrainingOptions:
    """How it is fitted."""

    solver: Annotated[str, _named(_of_training, f"{', '.join(SOLVERS)}; penalty is the paper's.", *SOLVERS)] = "auto"
    init: Annotated[str, _named(_of_training, "Start: kpca, random or orthogonal.", "kpca", "random", "orthogonal")] = (
        "kpca"
    )
    n_init: Annotated[int, _of_training(metavar="N", help="Starts, of which the best is kept.")] = 1
    tol: Annotated[float, _of_training(metavar="NUMBER", help="Largest stationarity.")] = 1e-6
    max_iter: Annotated[int, _of_training(metavar="N", help="Most iterations per start.")] = 1000
    max_seconds: Annotated[
        float | None, _of_training(metavar="NUMBER", help="Most seconds per start; the best so far is kept.")
    ] = None
    seed: Annotated[int, _of_training(metavar="N", help="Seed of random starts and of --sample.")] = 0
    device: Annotated[str, _of_training(metavar="NAME", help="auto, cpu, cuda, cuda:1, …")] = "auto"
    dtype: Annotated[str, _named(_of_training, "auto, float32 or float64.", "auto", "float32", "float64")] = "auto"
    checkpoint: Annotated[
        Path | None,
        _of_training(
            metavar="FILE",
            help="Keep the state here, so that the same command goes on after a crash; removed at the end.",
        ),
    ] = None

    def parameters(self) -> dict[str, Any]:
        """Return them as the estimator takes them; all but the seed have its names."""
        given = dict(vars(self))
        return {"random_state": given.pop("seed"), **given}


def estimator(
    model: ModelOptions, training: TrainingOptions, checkpoint: Checkpoint | None, *, progress: bool
) -> ConstrDRKM:
    """Return the estimator that the options describe, with a checkpoint in place of the name of its file."""
    from drkm import ConstrDRKM

    parameters = {**model.parameters(), **training.parameters(), "checkpoint": checkpoint}
    return ConstrDRKM(**parameters, verbose=int(progress))


def _one_or_several(given: list[Any]) -> Any:
    """Return the one value for all layers, or one per layer."""
    return given[0] if len(given) == 1 else given


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
