"""The commands `drkm encode` and `drkm denoise`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drkm.cli import _options as options
from drkm.cli._groups import grouped
from drkm.cli._help import examples
from drkm.cli._options import Data, Device, Force, Json, Model, Reading, TrainingData
from drkm.cli._outcome import say, warn
from drkm.cli.clean import Choosing, clean
from drkm.wording import counted

if TYPE_CHECKING:
    import numpy as np

    from drkm.cli._data import PreparedModel
    from drkm.inference.encoder import Encoding

#: number of anomalous rows that are named
NAMED = 5
#: share of ordinary rows that --anomaly calls strange
FALSE_ALARMS = 0.05

ENCODE_EXAMPLES = examples(
    "drkm encode X.safetensors new.npy -o codes.npy",
    "drkm encode table.safetensors table.csv -o codes.csv --quality",
)
DENOISE_EXAMPLES = examples(
    "drkm denoise noisy.csv -o clean.csv --auto --id patient --figure clean.png",
    "drkm denoise X.safetensors noisy.npy -o clean.npy --components 'layer 1'",
    "drkm denoise photos.safetensors noisy/ -o clean/",
)


@grouped
def encode(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="CODES", help="File for the codes: npy, npz or csv.")],
    reading: Reading,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="Add columns (csv, npz): residual, whether the code is ambiguous, and whether the row is strange, "
            "that is, unlike all training samples. Takes twice as long.",
        ),
    ] = False,
    anomaly: Annotated[
        bool,
        typer.Option(
            "--anomaly",
            help="Add a column (csv, npz): the distance between the prepared row and its denoised version. "
            "For a model from drkm fit --anomalies; fits it to parts of its samples to find a threshold.",
        ),
    ] = False,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the codes of data, one row per sample.

    Data are prepared as for fit; the columns of a table are matched by name, in any order. The csv file has the columns
    layer1_0, layer1_1, … and, for a folder of images, the name of each file.
    """
    from drkm import files

    files.check_target(out, force=force, suffixes=files.WRITABLE)
    reading.check(data)
    for option, asked in (("quality", quality), ("anomaly", anomaly)):
        if asked and out.suffix.lower() == ".npy":
            raise ValueError(f"{option}: {out} has no place for it, write to .csv or .npz")
    from drkm.cli._data import PreparedModel
    from drkm.strange_data.new_points import describe

    fitted = PreparedModel(model, device)
    table, rows = fitted.read(data, reading)
    encoding = fitted.model.encode(rows, ambiguity=quality)
    codes = fitted.numpy(encoding.codes)
    names = list(fitted.model.get_feature_names_out())
    more = _quality(encoding) if quality else {}
    judged = _Anomalies(fitted, rows) if anomaly else None
    if judged is not None:
        more[files.ANOMALY] = judged.distances
    with files.called("out"):
        files.write_table(out, codes, names, name="codes", before=table.row_names(), after=more)
    facts = _code_facts(encoding, quality=quality)
    if doubt := encoding.doubt():
        warn(doubt)
    if facts["strange"]:
        warn(describe(facts["strange"], len(codes)))
    if json:
        options.print_json({"codes": out, **facts, **(judged.facts() if judged else {})})
    else:
        say(_told_codes(out, facts) + (f"\n{judged.told(table.names)}" if judged else ""))


class _Anomalies:
    """Distances of rows to their denoised versions, and the threshold that few training samples exceed."""

    def __init__(self, fitted: PreparedModel, rows: np.ndarray):
        from drkm.anomalies import false_alarm_distance

        self.distances = -fitted.numpy(fitted.model.score_samples(rows))
        self.threshold = false_alarm_distance(fitted.model, FALSE_ALARMS)
        self.above = int((self.distances > self.threshold).sum())

    def facts(self) -> dict[str, Any]:
        return {"anomaly_threshold": self.threshold, "false_alarms": FALSE_ALARMS, "anomalies": self.above}

    def told(self, names: Sequence[str] | None) -> str:
        """Return what was found; rows without names are counted from 0."""
        have = "has" if self.above == 1 else "have"
        exceeded = f"the threshold for {FALSE_ALARMS:.0%} false alarms (cross-validated)"
        told = f"{self.above} of {len(self.distances)} rows {have} an anomaly above {self.threshold:.4g}, {exceeded}"
        first = (-self.distances).argsort(kind="stable")[: min(self.above, NAMED)]
        called = [f"{names[row] if names else f'row {row}'} ({self.distances[row]:.3g})" for row in first]
        return f"{told}\nfarthest: {', '.join(called)}" if called else told


def _quality(encoding: Encoding) -> dict[str, Any]:
    """Return the columns that --quality adds."""
    import numpy as np

    from drkm.files import QUALITY

    told = (encoding.residual, encoding.ambiguous, encoding.strange)
    residual, ambiguous, strange = map(np.asarray, told)
    return dict(zip(QUALITY, (residual, ambiguous.astype(int), strange.astype(int)), strict=True))


def _code_facts(encoding: Encoding, *, quality: bool) -> dict[str, Any]:
    import numpy as np

    return {
        "samples": len(encoding.codes),
        "components": encoding.codes.shape[1],
        "largest_residual": float(np.asarray(encoding.residual).max()),
        "ambiguous": int(np.asarray(encoding.ambiguous).sum()) if quality else None,
        "strange": int(np.asarray(encoding.strange).sum()),
        "unbounded": int(np.asarray(encoding.unbounded).sum()),
    }


def _told_codes(out: Path, facts: dict[str, Any]) -> str:
    samples, ambiguous, strange = (facts[name] for name in ("samples", "ambiguous", "strange"))
    said = f"codes of {counted(samples, 'sample')}, {counted(facts['components'], 'component')}, written to {out}\n"
    said += f"largest residual {facts['largest_residual']:.1g}"
    said += "" if ambiguous is None else f", {ambiguous} of {samples} codes ambiguous"
    return f"{said}, {strange} of {samples} rows strange" if strange else said


@grouped
def denoise(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model that drkm fit, drkm select or ConstrDRKM.save wrote; with --auto the data.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="npy, npz or csv, or a new folder for images.")
    ],
    reading: TrainingData,
    choosing: Choosing,
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="npy, npz, csv, tsv or parquet with one row per sample, or a folder of images.",
            show_default=False,
        ),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Choose a model for the data and denoise them: drkm denoise DATA --auto.")
    ] = False,
    components: Annotated[
        str,
        typer.Option(metavar="WHICH", help="all, 'layer 1', or a list of layer:index as in 1:0,1:3,2:0."),
    ] = "all",
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="fixed-point, gradient or ridge pre-images; by default what suits the kernel."
        ),
    ] = None,
    device: Device = "cpu",
    force: Force = False,
    json: Json = False,
) -> None:
    """Denoise data with a model.

    With --auto the model is chosen for the data: drkm denoise DATA -o OUT --auto. Values are in the units of the file.
    Images go to a new folder of PNG files if OUT has no suffix; npy and npz keep the shape of the images. A model that
    was not chosen for denoising may leave most of the noise: drkm select chooses one.
    """
    from drkm import files

    if files.names_folder(out):
        files.check_folder(out)
    else:
        files.check_target(out, force=force, suffixes=files.WRITABLE)
    if auto:
        if data is not None:
            raise ValueError(f"auto: expected the data alone, without a model, got {model} and {data}")
        _check_chosen(components, method, device, reading.sample)
        clean(model, out, reading, choosing, force=force, json=json)
        return
    if data is None:
        raise ValueError(f"data: expected MODEL and DATA, got {model} alone; --auto chooses a model for data")
    _check_unused(reading, choosing)
    reading.check(data)
    if reading.shape is not None and not files.names_folder(out):
        raise ValueError(f"shape: is for a folder of images, {out} is a file")
    asked = None if reading.shape is None else options.sizes("shape", reading.shape)
    _by_model(model, data, out, reading, asked, components, method, device, json=json)


def _check_chosen(components: str, method: str | None, device: str, sample: int | None) -> None:
    """Refuse options that only apply to a given model: --auto chooses them, and denoises the rows that it trains on."""
    given = {"components": components != "all", "method": method is not None, "device": device != "cpu"}
    if named := [name for name, is_given in given.items() if is_given]:
        raise ValueError(f"{named[0]}: is for a given model, --auto chooses one by itself")
    if sample is not None:
        raise ValueError(
            f"sample: --auto denoises the rows that it trains on, got {sample}; 'drkm select --for new --sample "
            f"{sample}' trains a model for the others"
        )


def _check_unused(reading: TrainingData, choosing: Choosing) -> None:
    """Refuse options that only apply to --auto: a model knows how its data were prepared."""
    plain, default = TrainingData(), Choosing()
    of_reading = ("scale", "impute", "resize", "grey", "sample")
    named = {name: getattr(reading, name) != getattr(plain, name) for name in of_reading}
    named |= {name: getattr(choosing, name) != value for name, value in vars(default).items()}
    if given := [name for name, is_given in named.items() if is_given]:
        raise ValueError(f"{given[0]}: is for --auto, a model knows how its data were prepared")


def _by_model(
    model: Path,
    data: Path,
    out: Path,
    reading: Reading,
    asked: tuple[int, ...] | None,
    components: str,
    method: str | None,
    device: str,
    *,
    json: bool,
) -> None:
    import numpy as np

    from drkm import files
    from drkm.cli._data import PreparedModel
    from drkm.strange_data.new_points import describe

    fitted = PreparedModel(model, device)
    image_shape = fitted.image_shape(asked) if files.names_folder(out) else None
    table, rows = fitted.read(data, reading)
    found = fitted.model.reconstruct(rows, options.components("components", components), method)
    values = fitted.preparation.undo(np.asarray(found.points))
    with files.called("out"):
        if image_shape is not None:
            files.write_images(out, fitted.pixels(values), image_shape, table.names)
        else:
            files.write_table(out, values, fitted.feature_names(), shape=table.shape, before=table.row_names())
    change = float(np.nanmean((values - table.values) ** 2))
    unfinished, strange = int((~found.converged).sum()), int(np.asarray(found.strange).sum())
    if strange:
        warn(describe(strange, len(values)))
    if json:
        facts: dict[str, Any] = {"out": out, "samples": len(values), "features": values.shape[1]}
        facts |= {"mean_squared_change": change, "not_converged": unfinished, "strange": strange}
        options.print_json(facts)
        return
    # drkm select reports errors of prepared data, which are other numbers.
    units = "in grey values from 0 to 255" if table.pictures else "in the units of the file"
    units = f" {units}" if fitted.preparation.changes_values else ""
    told = f"{counted(len(values), 'sample')} denoised, mean squared change {change:.4g}{units}, written to {out}"
    say(f"{told}\n{counted(unfinished, 'pre-image')} did not converge" if unfinished else told)
