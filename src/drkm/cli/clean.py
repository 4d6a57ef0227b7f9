"""Denoising a file without a given model: `select`, and `denoise --auto`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options
from drkm.cli._figures import FIGURES, write_figure
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Data, Force, Json, TrainingData
from drkm.cli._outcome import say
from drkm.wording import counted, unnamed

if TYPE_CHECKING:
    import numpy as np

    from drkm import ConstrDRKM
    from drkm.files import Table
    from drkm.inputs.preparation import Preparation
    from drkm.selection import Expected

SELECT_EXAMPLES = examples(
    "drkm select noisy.csv --id patient -o clean.safetensors",
    "drkm select photos/ --for new --noise 20 -o photos.safetensors",
)
#: number of samples in a figure of images, and of points in a figure of a table
SHOWN_IMAGES, SHOWN_POINTS = 10, 2000

_of_choice: Callable[..., Any] = partial(typer.Option, rich_help_panel="Choosing")


@dataclass(frozen=True)
class Choosing:
    """Options for choosing a model."""

    noise: Annotated[
        str,
        _of_choice(
            metavar="NUMBER", help="Standard deviation of the noise in the units of the file; auto estimates it."
        ),
    ] = "auto"
    criterion: Annotated[
        str,
        _of_choice(
            metavar="NAME",
            help="risk, the expected error; masked, the error on masked entries, which needs no noise level.",
        ),
    ] = "risk"
    jobs: Annotated[int, _of_choice(metavar="N", min=1, help="Number of candidates computed in parallel.")] = 1
    max_seconds: Annotated[
        float | None, _of_choice(metavar="NUMBER", help="Seconds after which no further stage of the search begins.")
    ] = None
    seed: Annotated[int, _of_choice(metavar="N", min=0, help="Seed of the random draws.")] = 0
    figure: Annotated[
        Path | None, _of_choice(metavar="FILE", help="Draw samples before and after to this file: png, svg or pdf.")
    ] = None

    def check(self, *, force: bool) -> None:
        """Refuse a figure file that cannot be written."""
        from drkm import files

        if self.figure is not None:
            files.check_target(self.figure, force=force, suffixes=FIGURES)

    def level(self, scale: Any) -> Any:
        """Return the noise in the units of prepared data."""
        import numpy as np

        if self.noise == "auto":
            return "auto"
        number, *others = options.numbers("noise", self.noise, float)
        if others or not (np.isfinite(number) and number > 0):
            raise ValueError(f"noise: expected a positive number or auto, got {self.noise!r}")
        return number / scale


@dataclass(frozen=True)
class Chosen:
    """The data, their preparation, the rows prepared by it, and the chosen model."""

    table: Table
    preparation: Preparation
    rows: np.ndarray
    model: ConstrDRKM
    noise: float
    expected: Expected
    cleaned: np.ndarray

    def pixels(self, samples: np.ndarray) -> np.ndarray:
        """Return prepared images as grey values from 0 to 255; white is the largest value if the file does not say."""
        import torch

        return self.preparation.knowing_white(torch.from_numpy(self.rows)).pixels(self.preparation.undo(samples))

    def facts(self) -> dict[str, Any]:
        """Return the results for JSON output."""
        model, expected = self.model, self.expected
        return {
            "samples": len(self.cleaned),
            "features": self.cleaned.shape[1],
            "kernel": model.kernels_[0].describe(),
            "center": model.center,
            "components": model.n_components,
            "shrink": model.shrink,
            "noise": self.noise,
            "noise_given": expected.noise_given,
            "expected_error": expected.error,
            "expected_error_deviation": expected.deviation,
            "noise_left": expected.noise_left,
            "sure": expected.sure,
        }

    def describe(self) -> str:
        """Return the results as text."""
        model = self.model
        centred = "centred" if model.center else "not centred"
        lines = [
            f"chosen: {model.kernels_[0].describe()}, {centred}, {counted(model.codes_.shape[1], 'component')}, "
            f"shrink {_in_words(model.shrink)}",
            self.expected.describe(),
        ]
        if self.preparation.changes_values:
            lines.append(f"errors are of prepared data: {self.preparation.describe()}")
        return "\n".join(lines)


def _in_words(shrink: Any) -> str:
    """Return the shrinkage in words, with the threshold to three digits."""
    parts = shrink if isinstance(shrink, tuple) else (shrink,)
    return " ".join(f"{part:.3g}" if isinstance(part, float) else str(part) for part in parts)


@grouped
def select(
    data: Data,
    reading: TrainingData,
    choosing: Choosing,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="MODEL", help="File for the model (safetensors).")
    ] = None,
    for_: Annotated[
        str, typer.Option("--for", metavar="WHICH", help="these samples, or new ones to denoise later.")
    ] = "these",
    force: Force = False,
    json: Json = False,
) -> None:
    """Choose a model that denoises data.

    Prints the model and its expected error. Kernel, bandwidth, centring and the weights of components are chosen
    without labels and without clean data. Columns of tables are standardised unless --scale is a number. Use the model
    with drkm denoise MODEL DATA.
    """
    from drkm import files

    if out is not None:
        files.check_target(out, force=force)
    found = chosen(data, reading, choosing, for_, force=force)
    if out is not None:
        with files.called("out"):
            found.model.save(out, preparation=found.preparation)
    _tell(found, {"model": out}, f"\nmodel written to {out}" if out else "", choosing.figure, json=json)


def clean(data: Path, out: Path, reading: TrainingData, choosing: Choosing, *, force: bool, json: bool) -> None:
    """Choose a model for data, denoise them and write the result."""
    from drkm import files

    found = chosen(data, reading, choosing, "these", force=force)
    table, preparation = found.table, found.preparation
    values = preparation.undo(found.cleaned)
    with files.called("out"):
        if files.names_folder(out):
            if preparation.shape is None:
                raise ValueError(
                    "shape: the data are not images; pass their shape, as in --shape 64x64, or write to .csv"
                )
            files.write_images(out, found.pixels(found.cleaned), preparation.shape, table.names)
        else:
            columns = table.columns or unnamed(values.shape[1])
            files.write_table(out, values, columns, shape=table.shape, before=table.row_names())
    _tell(
        found,
        {"out": out},
        f"\n{counted(len(values), 'sample')} denoised, written to {out}",
        choosing.figure,
        json=json,
    )


def chosen(data: Path, reading: TrainingData, choosing: Choosing, for_: str, *, force: bool) -> Chosen:
    """Choose a model for a file and denoise its samples; draw them if requested."""
    from drkm import files

    reading.check(data)
    choosing.check(force=force)
    from drkm.cli._data import drawn, prepare
    from drkm.selection import select as choose
    from drkm.strange_data import StrangeDataWarning

    table, preparation = prepare(data, reading, standard_tables=True)
    samples = drawn(preparation.apply(table.values), reading.sample, choosing.seed)
    rows = samples.rows
    wishes: dict[str, Any] = {
        "criterion": choosing.criterion,
        "n_jobs": choosing.jobs,
        "max_seconds": choosing.max_seconds,
        "random_state": choosing.seed,
    }
    with files.called("data", "X"), files.called("for", "for_"):
        level, verbose = choosing.level(preparation.scale), int(sys.stderr.isatty())
        # Said below, where columns have names.
        with warnings.catch_warnings(action="ignore", category=StrangeDataWarning):
            found = choose(rows, noise=level, for_=for_, verbose=verbose, **wishes)
        cleaned = found.denoise(rows)
    assert found.best_estimator is not None
    assert found.expected is not None
    samples.tell_strange(found.best_estimator, preparation.columns)
    result = Chosen(table, preparation, rows, found.best_estimator, found.noise, found.expected, cleaned)
    if choosing.figure is not None:
        _draw(choosing.figure, result)
    return result


def _draw(path: Path, found: Chosen) -> None:
    import numpy as np

    from drkm import plotting

    before, after, shape = found.rows, found.cleaned, found.preparation.shape
    if shape is not None:
        rows = np.linspace(0, len(before) - 1, min(SHOWN_IMAGES, len(before))).round().astype(int)
        pair = np.stack([found.pixels(images[rows]) for images in (before, after)]).reshape(2, len(rows), *shape)
        figure = plotting.image_grid(pair / 255, ("before", "after"), [""] * len(rows))
    else:
        figure = plotting.plot_cleaning(before[:SHOWN_POINTS], after[:SHOWN_POINTS])
    write_figure(path, figure)


def _tell(found: Chosen, where: dict[str, Any], told: str, figure: Path | None, *, json: bool) -> None:
    if json:
        options.print_json({**where, "figure": figure, **found.facts()})
        return
    say(f"{found.describe()}{told}" + (f"\nfigure in {figure}" if figure else ""))
