"""Training a model on a data file: fit."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options
from drkm.cli._help import examples
from drkm.cli._options import READING, Array, Data, Drop, Force, Header, Id, Json, Shape
from drkm.cli._outcome import Interrupted, say, warn

if TYPE_CHECKING:
    import numpy as np

    from drkm import ConstrDRKM

KERNELS = options.members("kernels")
SOLVERS = ["auto", *options.members("solvers")]

MODEL, TRAINING = "The model (one value, or one a layer with commas)", "Training"

EXAMPLES = examples(
    "drkm fit X.npy -o X.safetensors --components 20,10",
    "drkm fit photos/ -o photos.safetensors --resize 64 --grey",
    "drkm fit t.csv -o t.safetensors --id patient --drop label --scale standard",
    "drkm fit X.npy -o X.safetensors --sigma2 50,scale --checkpoint X.part --json",
)


def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="File for the model (safetensors).")],
    array: Array = None,
    id: Id = None,
    drop: Drop = None,
    header: Header = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="Divide all values by this number; standard gives every column mean 0 and variance 1; "
            "auto is 255 for 8-bit images and 1 for all else.",
            rich_help_panel=READING,
        ),
    ] = "auto",
    resize: Annotated[
        str | None,
        typer.Option(
            metavar="HxW", help="Bring images of a folder to this size: 64 or 48x64.", rich_help_panel=READING
        ),
    ] = None,
    grey: Annotated[
        bool, typer.Option("--grey", "--gray", help="Leave out the colours of images.", rich_help_panel=READING)
    ] = False,
    shape: Shape = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Train on N rows drawn at random (--seed).", rich_help_panel=READING),
    ] = None,
    components: Annotated[
        str,
        typer.Option("--components", "-c", metavar="N[,N…]", help="Components a layer.", rich_help_panel=MODEL),
    ] = "10,5",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME[,…]",
            help=f"{', '.join(KERNELS)}.",
            autocompletion=options.completed(*KERNELS),
            rich_help_panel=MODEL,
        ),
    ] = "rbf",
    sigma2: Annotated[
        str,
        typer.Option(
            metavar="VALUE[,…]",
            help="Bandwidth σ² of rbf, laplacian and matern: a number, median (layer 1), scale, or auto, "
            "which is median in layer 1 and scale above.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    eta: Annotated[
        str,
        typer.Option(
            metavar="NUMBER[,…]",
            help="Weight 1/η of each layer; auto keeps deep layers from drowning those below, 1 is the paper's choice.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    center: Annotated[
        bool, typer.Option("--center", help="Centre every layer in its feature space.", rich_help_panel=MODEL)
    ] = False,
    axes: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Reported basis: ritz, varimax, ica or none.",
            autocompletion=options.completed("ritz", "varimax", "ica", "none"),
            rich_help_panel=MODEL,
        ),
    ] = "ritz",
    learn_bandwidth: Annotated[
        bool,
        typer.Option("--learn-bandwidth", help="Minimise over σ² too, as the paper does.", rich_help_panel=MODEL),
    ] = False,
    solver: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(SOLVERS)}; penalty is the paper's.",
            autocompletion=options.completed(*SOLVERS),
            rich_help_panel=TRAINING,
        ),
    ] = "auto",
    init: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Start: kpca, random or orthogonal.",
            autocompletion=options.completed("kpca", "random", "orthogonal"),
            rich_help_panel=TRAINING,
        ),
    ] = "kpca",
    n_init: Annotated[
        int, typer.Option(metavar="N", help="Starts, of which the best is kept.", rich_help_panel=TRAINING)
    ] = 1,
    tol: Annotated[
        float, typer.Option(metavar="NUMBER", help="Largest stationarity.", rich_help_panel=TRAINING)
    ] = 1e-6,
    max_iter: Annotated[
        int, typer.Option(metavar="N", help="Most iterations a start.", rich_help_panel=TRAINING)
    ] = 1000,
    max_seconds: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Most seconds a start; the best so far is kept.", rich_help_panel=TRAINING),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of random starts and of --sample.", rich_help_panel=TRAINING)
    ] = 0,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, …", rich_help_panel=TRAINING)
    ] = "auto",
    dtype: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto, float32 or float64.",
            autocompletion=options.completed("auto", "float32", "float64"),
            rich_help_panel=TRAINING,
        ),
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the state here, so that the same command goes on after a crash; removed at the end.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Bar on stderr; by default only in a terminal.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Train a model on a data file and write it to a file.

    The model file also keeps how the data were read (columns, scale, shape of images), so that encode, denoise and
    traverse treat new data in the same way. It holds no code, so that files of others are safe to open; it does hold
    the training samples, which whoever gets the file can read. An existing file is only replaced with --force. A fit
    that does not converge is written, with a warning.
    """
    from drkm import files

    # What can be refused at once is, before the second that torch needs to be imported.
    if out.exists() and data.exists() and out.samefile(data):
        raise ValueError(f"out: {out} is the file of the data, choose another")
    files.check_target(out, force=force)
    files.check_source(data)
    files.check_options(data, array=array, id=id, drop=drop, header=header, resize=resize, grey=grey or None)
    if checkpoint is not None and checkpoint.resolve() == out.resolve():
        raise ValueError(f"checkpoint: {checkpoint} is the file of the model, choose another")
    from drkm import ConstrDRKM
    from drkm.cli._data import check_finite, prepare
    from drkm.training.checkpoint import Checkpoint

    table, preparation = prepare(
        data,
        columns=files.Columns(id, options.columns_of(drop), header=header),
        array=array,
        scale=scale,
        resize=None if resize is None else options.sizes("resize", resize, (2,)),
        grey=grey,
        shape=None if shape is None else options.sizes("shape", shape),
    )
    check_finite(data, table)
    rows = preparation.apply(table.values)
    kept = None if checkpoint is None else Checkpoint(checkpoint, keep=True)
    model = ConstrDRKM(
        tuple(options.numbers("components", components, int)),
        kernel=_kernels(kernel, sigma2, components),
        eta=eta if eta == "auto" else _one_or_several(options.numbers("eta", eta, float)),
        center=center,
        axes=None if axes.lower() == "none" else axes,
        learn_bandwidth=learn_bandwidth,
        solver=solver,
        init=init,
        n_init=n_init,
        tol=tol,
        max_iter=max_iter,
        max_seconds=max_seconds,
        random_state=seed,
        device=device,
        dtype=dtype,
        checkpoint=kept,
        verbose=int(sys.stderr.isatty() if progress is None else progress),
    )
    with files.called("data", "X"), files.called("components", "n_components"):
        _train(model, rows if sample is None else _drawn(rows, sample, seed), checkpoint)
    with files.called("out"):
        model.save(out, preparation=preparation)
    if kept is not None and not model.fitted_.result.status.cut_short:
        kept.remove()
    if json:
        options.print_json({"model": out, **_facts(model)})
    else:
        done = preparation.describe()
        say(f"{model.summary()}\nwritten to {out}{f' with how the data were read: {done}' if done else ''}")


def _train(model: ConstrDRKM, rows: np.ndarray, checkpoint: Path | None) -> None:
    from sklearn.exceptions import ConvergenceWarning

    from drkm.solvers import Status

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(rows)
    result, message = model.fitted_.result, model.fitted_.message
    if result.status is Status.INTERRUPTED:
        way = "use --checkpoint FILE to be able to go on, or --max-seconds to keep the best so far"
        if checkpoint is not None:
            way = f"the same command goes on from {checkpoint}"
        raise Interrupted(f"interrupted after {result.n_iter} iterations, no model was written: {way}")
    if result.status is Status.MAX_SECONDS and checkpoint is not None:
        warn(f"{message}; the same command with a larger --max-seconds and --force goes on from {checkpoint}")
    elif not result.converged:
        warn(message)


def _drawn(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    import numpy as np

    if count > len(rows):
        raise ValueError(f"sample: there are only {len(rows)} rows, got {count}")
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), count, replace=False))]


def _kernels(kernel: str, sigma2: str, components: str) -> Any:
    """Return one kernel a layer with its bandwidth; one name or value alone is for all layers."""
    from drkm.kernels import by_name

    names, widths = options.words_of(kernel), options.words_of(sigma2)
    layers = len(options.words_of(components))
    for option, given in (("kernel", names), ("sigma2", widths)):
        if len(given) not in (1, layers):
            raise ValueError(f"{option}: expected one value or one for each of the {layers} layers, got {len(given)}")
    chosen = []
    for name, width in zip(_spread(names, layers), _spread(widths, layers), strict=True):
        one = by_name(name)
        if width != "auto":
            if not one.has_bandwidth:
                instead = "" if len(widths) == 1 else ", give auto in its place"
                raise ValueError(f"sigma2: the kernel {name} has no bandwidth{instead}, got {sigma2!r}")
            one = one.with_parameters(sigma2=_number_or_word(width))
        chosen.append(one)
    return chosen


def _spread(given: list[str], layers: int) -> list[str]:
    return given * layers if len(given) == 1 else given


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _one_or_several(given: list[float]) -> float | list[float]:
    return given[0] if len(given) == 1 else given


def _facts(model: ConstrDRKM) -> dict[str, Any]:
    return {
        "samples": len(model.codes_),
        "features": model.n_features_in_,
        "components": [block.stop - block.start for block in model.layer_slices_],
        "kernels": [kernel.describe() for kernel in model.kernels_],
        "eta": model.eta_,
        "objective": model.objective_,
        "feasibility": model.feasibility_,
        "stationarity": model.stationarity_,
        "converged": model.converged_,
        "iterations": model.n_iter_,
        "seconds": model.fitted_.seconds,
        "eigenvalues": model.eigenvalues_,
    }
