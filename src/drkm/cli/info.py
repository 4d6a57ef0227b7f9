"""The command `drkm info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drkm.cli import _options as options
from drkm.cli._help import examples
from drkm.cli._options import Json, Model
from drkm.cli._outcome import say
from drkm.wording import for_terminal, in_bytes

if TYPE_CHECKING:
    from drkm import ConstrDRKM
    from drkm.cli._data import PreparedModel

EXAMPLES = examples(
    "drkm info X.safetensors",
    "drkm info X.safetensors --json",
)


def info(model: Model, json: Json = False) -> None:
    """Show what a model learned, and which data it accepts.

    Nothing is computed: layers, kernels, spectrum and convergence are read from the file, with the columns or the shape
    of its samples and how they are prepared.
    """
    from drkm.cli._data import PreparedModel

    fitted = PreparedModel(model)
    size = model.stat().st_size
    if json:
        options.print_json({"model": model, "bytes": size, **facts(fitted.model), **_data_facts(fitted)})
        return
    say(f"{model}, {in_bytes(size)}")
    say(for_terminal("\n".join([fitted.model.summary(), *_data_lines(fitted)])))


def facts(model: ConstrDRKM) -> dict[str, Any]:
    """Return the facts about a model for JSON output."""
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


def _data_facts(fitted: PreparedModel) -> dict[str, Any]:
    prepared = fitted.preparation
    return {"columns": fitted.columns, "shape": prepared.shape, "id": prepared.id, "prepared": prepared.describe()}


def _data_lines(fitted: PreparedModel) -> list[str]:
    """Return lines on the data that the model accepts, and their preparation."""
    from drkm.files import listed

    prepared, count = fitted.preparation, fitted.model.n_features_in_
    if fitted.columns is not None:
        takes = f"tables with the columns {listed(fitted.columns)}"
    elif prepared.shape is not None:
        takes = f"images of {'x'.join(map(str, prepared.shape))}"
        takes += ", others are brought to that size" if prepared.resize else ""
    else:
        takes = f"arrays with rows of {count} numbers"
    lines = [f"takes {takes}"]
    if prepared.id is not None:
        lines.append(f"rows are named by the column {prepared.id!r}, if present")
    if done := prepared.describe():
        lines.append(f"data are prepared as for training: {done}")
    return lines
