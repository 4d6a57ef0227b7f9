"""Using a trained model: encode, denoise and traverse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.commands import _options as options
from drkm.commands._help import examples
from drkm.commands._options import Array, Data, Device, Force, Id, Json, Model, Shape

if TYPE_CHECKING:
    import numpy as np

    from drkm.commands._data import FittedModel

TABLES = (".npy", ".npz", ".csv")
FIGURES = (".png", ".svg", ".pdf")

ENCODE_EXAMPLES = examples(
    "drkm encode X.safetensors new.npy -o codes.npy",
    "drkm encode table.safetensors table.csv -o codes.csv --id patient --quality",
)
DENOISE_EXAMPLES = examples(
    "drkm denoise X.safetensors noisy.npy -o clean.npy --components 'layer 1'",
    "drkm denoise photos.safetensors noisy/ -o clean/",
)
TRAVERSE_EXAMPLES = examples(
    "drkm traverse photos.safetensors -o components.png",
    "drkm traverse X.safetensors -o moved.csv --component 1:0 --base 12 --steps 5",
)


def encode(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="CODES", help="File for the codes: npy, npz or csv.")],
    array: Array = None,
    id: Id = None,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="Add two columns (csv, npz): residual, and whether the code is ambiguous. Takes twice as long.",
        ),
    ] = False,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the codes of data, one row a sample.

    Data are prepared as they were for fit; a table is read by the names of the model's columns, in any order. The csv
    has the names layer1_0, layer1_1, … and, for a folder of images, the name of each file.
    """
    import numpy as np

    from drkm import files

    files.check_target(out, force=force, suffixes=TABLES)
    if quality and out.suffix.lower() == ".npy":
        raise ValueError(f"quality: {out} has no place for it, write to .csv or .npz")
    fitted = _load(model, device)
    table, rows = fitted.read(data, array=array, id=id)
    encoding = fitted.model.encode(rows, ambiguity=quality)
    codes, residual = np.asarray(encoding.codes), np.asarray(encoding.residual)
    more: dict[str, Any] = {}
    if quality:
        more = {"residual": residual, "ambiguous": np.asarray(encoding.ambiguous).astype(int)}
    names = None if table.names is None else (table.title, table.names)
    files.write_table(out, codes, list(fitted.model.get_feature_names_out()), names=names, more=more)
    ambiguous = int(more["ambiguous"].sum()) if quality else None
    if json:
        facts = {"codes": out, "samples": len(codes), "components": codes.shape[1]}
        options.print_json({**facts, "largest_residual": float(residual.max()), "ambiguous": ambiguous})
        return
    told = f"codes of {len(codes)} samples, {codes.shape[1]} components, written to {out}\n"
    told += f"largest residual {residual.max():.1g}"
    typer.echo(told if ambiguous is None else f"{told}, {ambiguous} of {len(codes)} codes ambiguous")


def denoise(
    model: Model,
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="npy, npz or csv, or a new folder for images.")
    ],
    components: Annotated[
        str,
        typer.Option(metavar="WHICH", help="all, 'layer 1', or a list of layer:index as in 1:0,1:3,2:0."),
    ] = "all",
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Pre-images by fixed-point, gradient or ridge; by default what suits the kernel."
        ),
    ] = None,
    array: Array = None,
    id: Id = None,
    shape: Shape = None,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write data reconstructed from a model's components.

    Values are in the units of the file. Images go to a new folder of PNG files when OUT has no suffix; npy and npz
    keep the shape of the images.
    """
    import numpy as np

    from drkm import files

    asked = None if shape is None else options.sizes("shape", shape)
    folder = _is_folder(out)
    _check_out(out, force, folder, TABLES)
    fitted = _load(model, device)
    image_shape = fitted.image_shape(asked) if folder else None
    table, rows = fitted.read(data, array=array, id=id)
    found = fitted.model.reconstruct(rows, options.components("components", components), method)
    values = fitted.preparation.undo(found.points.cpu().numpy())
    if image_shape is not None:
        files.write_images(out, fitted.pixels(values), image_shape, table.names)
    else:
        names = None if table.names is None else (table.title, table.names)
        files.write_table(out, values, fitted.feature_names(), shape=table.shape, names=names)
    change = float(np.mean((values - table.values) ** 2))
    unfinished = int((~found.converged).sum())
    if json:
        facts: dict[str, Any] = {"out": out, "samples": len(values), "features": values.shape[1]}
        options.print_json({**facts, "mean_squared_change": change, "not_converged": unfinished})
        return
    told = f"{len(values)} samples denoised, mean squared change {change:.4g}, written to {out}"
    typer.echo(f"{told}\n{unfinished} pre-images did not converge" if unfinished else told)


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
        str | None, typer.Option(metavar="NUMBERS", help="Values of the code, as in -0.1,0,0.1; instead of --steps.")
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Number of values.")] = 7,
    span: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="They reach this many standard deviations to both sides of the mean."),
    ] = 2.0,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="ROW|DATA",
            help="Whose other codes are kept: a training row from 0, or the first row of a file; "
            "by default a typical training row.",
        ),
    ] = None,
    shape: Shape = None,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write data along components: one code moves, the others stay.

    Tables have one row a value, component after component; the csv says which. A strip has one line a component.
    """
    import numpy as np

    from drkm import files

    asked = None if shape is None else options.sizes("shape", shape)
    _check_out(out, force, False, TABLES + FIGURES)
    fitted = _load(model, device)
    drawn = out.suffix.lower() in FIGURES
    image_shape = fitted.image_shape(asked) if drawn else fitted.preparation.shape
    pairs = [options.component("component", text) for text in component or []]
    pairs = pairs or [(1, index) for index in range(fitted.model.layer_slices_[0].stop)]
    start = _base(fitted, base)
    grids = [_grid(fitted, pair, values, steps, span) for pair in pairs]
    moved = np.concatenate(
        [np.asarray(fitted.model.traverse(*pair, grid, start)) for pair, grid in zip(pairs, grids, strict=True)]
    )
    points = fitted.preparation.undo(moved)
    if drawn:
        _draw(out, fitted, points, image_shape, pairs, grids)
    else:
        columns = np.concatenate([np.column_stack([[pair] * len(g), g]) for pair, g in zip(pairs, grids, strict=True)])
        more = dict(zip(("layer", "index"), columns[:, :2].T.astype(int).tolist(), strict=True))
        more["value"] = columns[:, 2].tolist()
        files.write_table(out, points, fitted.feature_names(), shape=image_shape, more=more)
    if json:
        rows = [
            {"layer": layer, "index": index, "values": grid} for (layer, index), grid in zip(pairs, grids, strict=True)
        ]
        options.print_json({"out": out, "samples": len(points), "features": points.shape[1], "components": rows})
    else:
        count = "1 component" if len(pairs) == 1 else f"{len(pairs)} components"
        typer.echo(f"{count}, {len(grids[0])} values each, written to {out}")


def _load(path: Path, device: str) -> FittedModel:
    from drkm.commands._data import FittedModel

    return FittedModel(path, device)


def _is_folder(out: Path) -> bool:
    return not out.suffix or out.is_dir()


def _check_out(out: Path, force: bool, folder: bool, suffixes: tuple[str, ...]) -> None:
    from drkm import files

    if folder:
        files.check_folder(out)
    else:
        files.check_target(out, force=force, suffixes=suffixes)


def _base(fitted: FittedModel, base: str | None) -> Any:
    if base is None or base.lstrip("-").isdecimal():
        return None if base is None else int(base)
    return fitted.read(Path(base))[1][0]


def _grid(fitted: FittedModel, pair: tuple[int, int], values: str | None, steps: int, span: float) -> np.ndarray:
    import numpy as np

    from drkm.parameters import component_columns

    if values is not None:
        return np.array(options.numbers("values", values, float))
    column = component_columns([pair], fitted.model.layer_slices_)[0]
    codes = np.asarray(fitted.model.codes_)[:, column]
    return codes.mean() + codes.std() * np.linspace(-span, span, steps)


def _draw(
    out: Path,
    fitted: FittedModel,
    points: np.ndarray,
    shape: Any,
    pairs: list[tuple[int, int]],
    grids: list[np.ndarray],
) -> None:
    from drkm.files import write_whole
    from drkm.plotting import image_grid

    images = fitted.pixels(points).reshape(len(pairs), len(grids[0]), *shape)
    figure = image_grid(images / 255, [f"layer {layer}, {index}" for layer, index in pairs])
    write_whole(out, lambda file: figure.savefig(file, format=out.suffix[1:].lower()))
