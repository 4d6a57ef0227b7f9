"""The command `drkm fit`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drkm.cli import _options as options
from drkm.cli._estimator import ModelOptions, TrainingOptions, estimator
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Data, Force, Json, TrainingData
from drkm.cli._outcome import Interrupted, say, warn
from drkm.cli.info import facts
from drkm.wording import counted, for_terminal

if TYPE_CHECKING:
    import numpy as np

    from drkm import ConstrDRKM
    from drkm.cli._data import TrainingRows
    from drkm.inputs.preparation import Preparation

EXAMPLES = examples(
    "drkm fit X.npy -o X.safetensors --components 20,10",
    "drkm fit photos/ -o photos.safetensors --resize 64 --grey",
    "drkm fit t.csv -o t.safetensors --id patient --drop label --scale standard",
    "drkm fit t.csv -o t.safetensors --impute fill --scale standard --anomalies",
    "drkm fit X.npy -o X.safetensors --sigma2 50,scale --checkpoint X.part --json",
)


@grouped
def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="File for the model (safetensors).")],
    reading: TrainingData,
    model: ModelOptions,
    training: TrainingOptions,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Progress bar; by default only in a terminal.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Train a model on a data file and write it to a file.

    The model file also records how the data were read (columns, scale, shape of images), so that encode, denoise and
    traverse treat new data in the same way. It holds no code, so that files of others are safe to open; it does hold
    the training samples, which anyone with the file can read. An existing file is only replaced with --force. A fit
    that does not converge is written with a warning.
    """
    # Refuse what can be checked without torch before its import, which takes a second.
    _check_paths(data, out, training.checkpoint, force=force)
    reading.check(data)
    from drkm import files
    from drkm.training.checkpoint import Checkpoint

    samples, preparation = _samples(data, reading, training.seed)
    kept = None if training.checkpoint is None else Checkpoint(training.checkpoint, keep=True)
    fitted = estimator(model, training, kept, progress=sys.stderr.isatty() if progress is None else progress)
    if model.anomalies:
        _choose_for_anomalies(fitted, samples.rows, model)
    with files.called("data", "X"), files.called("components", "n_components"):
        _train(fitted, samples, preparation.columns, training.checkpoint)
    with files.called("out"):
        fitted.save(out, preparation=preparation)
    if kept is not None and not fitted.fitted_.result.status.cut_short:
        kept.remove()
    _tell(fitted, preparation, out, json=json)


def _check_paths(data: Path, out: Path, checkpoint: Path | None, *, force: bool) -> None:
    from drkm import files

    if out.exists() and data.exists() and out.samefile(data):
        raise ValueError(f"out: {out} is the file of the data, choose another")
    files.check_target(out, force=force)
    if checkpoint is not None and checkpoint.resolve() == out.resolve():
        raise ValueError(f"checkpoint: {checkpoint} is the file of the model, choose another")


def _samples(data: Path, reading: TrainingData, seed: int) -> tuple[TrainingRows, Preparation]:
    """Return the rows to train on and their preparation."""
    from drkm.cli._data import drawn, prepare

    table, preparation = prepare(data, reading)
    return drawn(preparation.apply(table.values), reading.sample, seed), preparation


def _choose_for_anomalies(fitted: ConstrDRKM, rows: np.ndarray, given: ModelOptions) -> None:
    """Set parameters of the model for drkm encode --anomaly."""
    import torch

    from drkm import files
    from drkm.anomalies import parameters

    chosen = ("components", "kernel", "sigma2", "center", "learn_bandwidth")
    plain = ModelOptions()
    if given_too := [name for name in chosen if getattr(given, name) != getattr(plain, name)]:
        raise ValueError(f"anomalies: chooses {given_too[0].replace('_', '-')} itself, leave that out")
    with files.called("data", "X"):
        fitted.set_params(**parameters(torch.from_numpy(rows)))


def _train(model: ConstrDRKM, samples: TrainingRows, columns: Sequence[str] | None, checkpoint: Path | None) -> None:
    from sklearn.exceptions import ConvergenceWarning

    from drkm.solvers import Status
    from drkm.strange_data import StrangeDataWarning

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # Said below, where columns have names.
        warnings.simplefilter("ignore", StrangeDataWarning)
        model.fit(samples.rows)
    result, message = model.fitted_.result, model.fitted_.message
    if result.status is Status.INTERRUPTED:
        way = "use --checkpoint FILE to be able to resume, or --max-seconds to keep the best so far"
        if checkpoint is not None:
            way = f"the same command resumes from {checkpoint}"
            if not checkpoint.exists():
                way = f"nothing was written to {checkpoint} yet, the same command begins anew"
        raise Interrupted(f"interrupted after {counted(result.n_iter, 'iteration')}, no model was written: {way}")
    if result.status is Status.MAX_SECONDS and checkpoint is not None:
        warn(f"{message}; the same command with a larger --max-seconds and --force resumes from {checkpoint}")
    elif not result.converged:
        warn(message)
    samples.tell_strange(model, columns)


def _tell(model: ConstrDRKM, preparation: Preparation, out: Path, *, json: bool) -> None:
    if json:
        options.print_json({"model": out, **facts(model)})
        return
    done = preparation.describe()
    say(f"{for_terminal(model.summary())}\nwritten to {out}{f' with how the data were read: {done}' if done else ''}")
