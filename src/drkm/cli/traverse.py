"""The command `drkm traverse`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options
from drkm.cli._figures import FIGURES, write_figure
from drkm.cli._help import examples
from drkm.cli._options import Device, Force, Json, Model, Shape
from drkm.cli._outcome import say
from drkm.wording import counted, from_mean

if TYPE_CHECKING:
    import numpy as np

    from drkm.cli._data import PreparedModel

EXAMPLES = examples(
    "drkm traverse photos.safetensors -o components.png",
    "drkm traverse X.safetensors -o moved.csv --component 1:0 --base 12 --steps 5",
)
#: default number of values, and standard deviations on both sides of the mean that they reach
STEPS, SPAN = 7, 2.0


@dataclass(frozen=True)
class Line:
    """One component, and the values of its code."""

    layer: int
    index: int
    values: np.ndarray


def traverse(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="npy, npz or csv; png, svg or pdf for a strip of images.")
    ],
    component: Annotated[
        list[str] | None,
        typer.Option(metavar="L:I", help="Component as layer:index; may be repeated. By default all of layer 1."),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Values of the code, as in -0.1,0,0.1; instead of --steps and --span."),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Number of values.")] = STEPS,
    span: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="Standard deviations on both sides of the mean that they reach."),
    ] = SPAN,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="ROW|DATA",
            help="The sample to move: a training row, counted from 0, or the first row of a file; "
            "by default a typical training row.",
        ),
    ] = None,
    shape: Shape = None,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write data along components: one code changes, the others stay.

    Tables have one row per value, one component after another; csv and npz files have columns that say which. A strip
    of images has one line per component.
    """
    import numpy as np

    from drkm import files
    from drkm.cli._data import PreparedModel

    files.check_target(out, force=force, suffixes=files.WRITABLE + FIGURES)
    if values is not None and (steps, span) != (STEPS, SPAN):
        raise ValueError(
            f"{'steps' if steps != STEPS else 'span'}: --values {values} gives all values, leave one of them out"
        )
    if not np.isfinite(span):
        raise ValueError(f"span: expected a finite number, got {span}")
    fitted = PreparedModel(model, device)
    drawn = out.suffix.lower() in FIGURES
    image_shape = fitted.preparation.shape
    if drawn or shape is not None:
        asked = None if shape is None else options.sizes("shape", shape)
        image_shape = fitted.image_shape(asked, "or draw a table with drkm plot --what traversal")
    pairs = [options.component("component", text) for text in component or []]
    pairs = pairs or [(1, index) for index in range(fitted.model.layer_slices_[0].stop)]
    lines = [_line(fitted, pair, values, steps, span) for pair in pairs]
    start = _base(fitted, base)
    moved = [fitted.numpy(fitted.model.traverse(line.layer, line.index, line.values, start)) for line in lines]
    points = fitted.preparation.undo(np.concatenate(moved))
    with files.called("out"):
        if drawn:
            heads = options.words_of(values) or [from_mean(z) for z in np.linspace(-span, span, steps)]
            _draw(out, fitted.pixels(points).reshape(len(lines), len(heads), *(image_shape or ())), lines, heads)
        else:
            files.write_table(out, points, fitted.feature_names(), shape=image_shape, before=_columns(lines))
    if json:
        rows = [vars(line) for line in lines]
        options.print_json({"out": out, "samples": len(points), "features": points.shape[1], "components": rows})
    else:
        each = counted(len(lines[0].values), "value")
        say(f"{counted(len(lines), 'component')}, {each} each, written to {out}")


def _line(fitted: PreparedModel, pair: tuple[int, int], values: str | None, steps: int, span: float) -> Line:
    import numpy as np

    from drkm.files import called
    from drkm.training.parameters import component_columns

    with called("component", "components"):
        column = component_columns([pair], fitted.model.layer_slices_)[0]
    if values is not None:
        return Line(*pair, np.array(options.numbers("values", values, float)))
    codes = fitted.numpy(fitted.model.codes_)[:, column]
    return Line(*pair, codes.mean() + codes.std() * np.linspace(-span, span, steps))


def _base(fitted: PreparedModel, base: str | None) -> Any:
    """Return the base for ConstrDRKM.traverse: None, the number of a training row, or a point."""
    from drkm.files import called

    if base is None:
        return None
    if base.lstrip("-").isdecimal():
        return int(base)
    with called("base", "data"):
        return fitted.read(Path(base))[1][0]


def _columns(lines: list[Line]) -> dict[str, list[Any]]:
    """Return layer, index and value of every row."""
    rows = [(line.layer, line.index, value) for line in lines for value in line.values.tolist()]
    return dict(zip(("layer", "index", "value"), map(list, zip(*rows, strict=True)), strict=True))


def _draw(out: Path, images: np.ndarray, lines: list[Line], heads: list[str]) -> None:
    from drkm.plotting import image_grid

    write_figure(out, image_grid(images / 255, [f"layer{line.layer}_{line.index}" for line in lines], heads))
