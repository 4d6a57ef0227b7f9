"""The command `drkm plot`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options
from drkm.cli._figures import FIGURES, write_figure
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Device, Force, Json, Model, Reading, Shape, ShownData, completed
from drkm.cli._outcome import say
from drkm.wording import counted

if TYPE_CHECKING:
    import numpy as np

    from drkm import ConstrDRKM

EXAMPLES = examples(
    "drkm plot digits.safetensors -o figures",
    "drkm plot wine.safetensors wine.csv --labels class -o codes.pdf --what codes",
)
NAMES = ("spectrum", "codes", "reconstructions", "traversal", "convergence")


@dataclass(frozen=True)
class Drawing:
    """A model, and the data that figures of it show.

    Attributes
    ----------
    model : ConstrDRKM
    rows : prepared samples; None for those of the fit
    labels : one entry per sample, if there are any
    features : names of the columns
    shape : shape of images, None for tables
    names : names of the rows, if they have names
    limits : values of black and white in prepared images, if they are known
    """

    model: ConstrDRKM
    rows: np.ndarray | None
    labels: Sequence[str] | None
    features: Sequence[str]
    shape: tuple[int, ...] | None
    names: Sequence[str] | None
    limits: tuple[float, float] | None


@grouped
def plot(
    model: Model,
    reading: Reading,
    data: ShownData = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="OUT", help="A new folder for png files, or one png, svg or pdf file."),
    ] = Path("figures"),
    what: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"Figures to draw: {', '.join(NAMES)}.",
            autocompletion=completed(*NAMES),
        ),
    ] = ",".join(NAMES),
    labels: Annotated[
        str | None,
        typer.Option(metavar="COLUMN|FILE", help="Column of DATA, or a file with one row per sample, to colour by."),
    ] = None,
    shape: Shape = None,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw figures of what a model learned.

    The spectrum of each layer; codes against each other; samples beside their reconstructions; what changes along
    components, those with the largest effect first; convergence. Images are drawn as images, tables as maps of their
    columns.
    """
    from drkm import files

    names = _names(what, out)
    if out.suffix:
        files.check_target(out, force=force, suffixes=FIGURES)
    else:
        files.check_folder(out)
    reading.check_shown(data, labels)
    drawing = _drawing(model, data, labels, reading, shape, device)

    def draw(folder: Path) -> None:
        for name in names:
            write_figure(folder / f"{name}.png", _figure(name, drawing))

    with files.called("out"):
        if out.suffix:
            write_figure(out, _figure(names[0], drawing))
        else:
            files.write_whole_folder(out, draw)
    if json:
        options.print_json({"out": out, "figures": names})
    else:
        say(f"{counted(len(names), 'figure')} written to {out}: {', '.join(names)}")


def _names(what: str, out: Path) -> list[str]:
    """Return the requested figures, if there is a place for each."""
    names = options.words_of(what)
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise ValueError(f"what: expected some of {', '.join(NAMES)}, got {what!r}")
    if out.suffix and len(names) > 1:
        raise ValueError(f"what: {out} holds one figure, name one of {', '.join(names)}, or give a folder as out")
    return names


def _drawing(
    path: Path, data: Path | None, labels: str | None, reading: Reading, shape: str | None, device: str
) -> Drawing:
    from drkm import files
    from drkm.cli._data import shown

    fitted, table, rows, image, known = shown(path, data, labels, reading, shape, device)
    if len(known) > 1:
        raise ValueError(f"labels: expected one column, {labels} has {files.listed(list(known))}")
    entries = next(iter(known.values()), None)
    names = None if table is None else table.names
    return Drawing(fitted.model, rows, entries, fitted.feature_names(), image, names, fitted.preparation.grey_limits)


def _figure(name: str, of: Drawing) -> Any:
    from drkm import plotting

    data: dict[str, Any] = {"shape": of.shape, "feature_names": of.features, "limits": of.limits}
    match name:
        case "spectrum":
            return plotting.plot_spectrum(of.model)
        case "codes":
            return plotting.plot_codes(of.model, of.rows, of.labels)
        case "reconstructions":
            return plotting.plot_reconstructions(of.model, of.rows, row_names=of.names, **data)
        case "traversal":
            return plotting.plot_traversal(of.model, of.rows, **data)
        case _:
            return plotting.plot_convergence(of.model)
