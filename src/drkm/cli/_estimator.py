"""The options of `drkm fit` that are parameters of the estimator."""

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
    """Return an option whose values are names, for shell completion."""
    return option(metavar=metavar, help=help, autocompletion=options.completed(*names))


@dataclass(frozen=True)
class ModelOptions:
    """Options that describe the model."""

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
            help="η of each layer, with weight 1/η; auto keeps deep layers from dominating, 1 is the paper's choice.",
        ),
    ] = "auto"
    center: Annotated[bool, _of_model("--center", help="Centre every layer in its feature space.")] = False
    axes: Annotated[
        str, _named(_of_model, "Basis of the codes: ritz, varimax, ica or none.", "ritz", "varimax", "ica", "none")
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
        """Return the options as parameters of the estimator."""
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
    """Options that describe the training."""

    solver: Annotated[str, _named(_of_training, f"{', '.join(SOLVERS)}; penalty is the paper's.", *SOLVERS)] = "auto"
    init: Annotated[str, _named(_of_training, "Start: kpca, random or orthogonal.", "kpca", "random", "orthogonal")] = (
        "kpca"
    )
    n_init: Annotated[int, _of_training(metavar="N", help="Number of starts; the best one is kept.")] = 1
    tol: Annotated[float, _of_training(metavar="NUMBER", help="Tolerance for the stationarity.")] = 1e-6
    max_iter: Annotated[int, _of_training(metavar="N", help="Maximum number of iterations per start.")] = 1000
    max_seconds: Annotated[
        float | None, _of_training(metavar="NUMBER", help="Maximum seconds per start; the best point so far is kept.")
    ] = None
    seed: Annotated[int, _of_training(metavar="N", min=0, help="Seed of random starts and of --sample.")] = 0
    device: Annotated[str, _of_training(metavar="NAME", help="auto, cpu, cuda, cuda:1, …")] = "auto"
    dtype: Annotated[str, _named(_of_training, "auto, float32 or float64.", "auto", "float32", "float64")] = "auto"
    checkpoint: Annotated[
        Path | None,
        _of_training(
            metavar="FILE",
            help="File for the state, so that the same command resumes after a crash; removed at the end.",
        ),
    ] = None

    def parameters(self) -> dict[str, Any]:
        """Return the options as parameters of the estimator; all but the seed have the same names."""
        given = dict(vars(self))
        return {"random_state": given.pop("seed"), **given}


def estimator(
    model: ModelOptions, training: TrainingOptions, checkpoint: Checkpoint | None, *, progress: bool
) -> ConstrDRKM:
    """Return the estimator with these options; the checkpoint file becomes a `Checkpoint`."""
    from drkm import ConstrDRKM

    parameters = {**model.parameters(), **training.parameters(), "checkpoint": checkpoint}
    return ConstrDRKM(**parameters, verbose=int(progress))


def _one_or_several(given: list[Any]) -> Any:
    """Return a single value, or a tuple with one value per layer."""
    return given[0] if len(given) == 1 else given


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
