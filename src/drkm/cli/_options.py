"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import ast
import csv
import json as json_format
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from drkm.cli._outcome import say
from drkm.files.json_values import plain

if TYPE_CHECKING:
    from drkm.experiments.settings import Seeds, Variant

#: ways to fill gaps; a copy, because importing `drkm.imputation` takes too long for --help
IMPUTE = ("fill", "mean", "median")
Number = TypeVar("Number", int, float)

READING = "Reading the data"
_of_reading: Callable[..., Any] = partial(typer.Option, rich_help_panel=READING)

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that drkm fit or ConstrDRKM.save wrote.", show_default=False)
]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="npy, npz, csv, tsv or parquet with one row per sample, or a folder of images.",
        show_default=False,
    ),
]
ShownData = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Samples to show; by default those that the model was trained on. Files as for encode.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", show_default=False)]
Header = Annotated[
    bool | None,
    _of_reading("--header/--no-header", help="Whether a csv file has a header line; by default detected."),
]
SeedsOption = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N[,MODEL=N]",
        help="Number of seeds of the disentanglement experiments, also per model: 10,beta-vae=5.",
        show_default="those of the scale",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Your own variant, whose runs are stored apart from the paper's: gamma=2. May be repeated.",
        show_default=False,
    ),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, …")]
Shape = Annotated[str | None, _of_reading(metavar="HxW[x3]", help="Shape of images that are stored as plain rows.")]


@dataclass(frozen=True)
class Reading:
    """Options for reading a data file."""

    array: Annotated[str | None, _of_reading(metavar="NAME", help="Array to read from an npz file.")] = None
    id: Annotated[
        str | None,
        _of_reading("--id", metavar="COLUMN", help="Column of row names: not used as data, but kept in csv output."),
    ] = None
    drop: Annotated[
        str | None,
        _of_reading(
            metavar="COLUMNS",
            help="Columns of a table to leave out: label,date; put names that contain a comma in double quotes.",
        ),
    ] = None
    header: Header = None

    def check(self, data: Path) -> None:
        """Refuse a file that does not exist, and options that do not apply to its type."""
        from drkm import files

        files.check_source(data)
        files.check_options(data, array=self.array, id=self.id, drop=self.drop, header=self.header)

    def check_shown(self, data: Path | None, labels: str | None) -> None:
        """Check the options of a file that need not be given; a file of labels may have a header line too."""
        if data is not None:
            self.check(data)
            return
        of_labels = ("header",) if labels and labels.lower().endswith((".csv", ".tsv")) else ()
        for name in ("array", "id", "drop", "header"):
            if getattr(self, name) is not None and name not in of_labels:
                raise ValueError(f"{name}: is for reading DATA, and no data are given")

    @property
    def dropped(self) -> list[str]:
        """The columns to leave out."""
        return columns_of(self.drop)


@dataclass(frozen=True)
class TrainingData(Reading):
    """Options for reading and preparing a data file."""

    scale: Annotated[
        str,
        _of_reading(
            metavar="NUMBER",
            help="Divide all values by this number; standard gives every column mean 0 and variance 1; "
            "auto is 255 for 8-bit images and 1 otherwise, but standard for tables in select and denoise --auto.",
        ),
    ] = "auto"
    impute: Annotated[
        str | None,
        _of_reading(
            metavar="HOW",
            help="How to fill gaps (empty entries, NA, NaN), here and in later data: fill, as drkm fill does, "
            "or the mean or median of the column.",
            autocompletion=completed(*IMPUTE),
        ),
    ] = None
    resize: Annotated[
        str | None, _of_reading(metavar="HxW", help="Resize the images of a folder, stretched if need be: 64 or 48x64.")
    ] = None
    grey: Annotated[bool, _of_reading("--grey", "--gray", help="Convert images to grey.")] = False
    shape: Shape = None
    sample: Annotated[int | None, _of_reading(metavar="N", min=2, help="Train on N rows drawn at random (--seed).")] = (
        None
    )

    def check(self, data: Path) -> None:
        """Refuse a file that does not exist, and options that do not apply to its type."""
        from drkm import files

        super().check(data)
        if self.impute is not None:
            check_impute(self.impute)
        files.check_options(data, resize=self.resize, grey=self.grey or None)


def check_impute(how: str) -> None:
    """Refuse an unknown way to fill gaps before torch is imported, which takes a second."""
    if how not in IMPUTE:
        raise ValueError(f"impute: unknown way {how!r}, allowed are {', '.join(IMPUTE)}")


def members(family: str) -> list[str]:
    """Return the registered names of a family, read from its source files, so that a help page need not import torch.

    These are the classes with the decorator `register`. Classes that were registered at run time count too.
    """
    package = f"drkm.{family}"
    if package in sys.modules:
        return list(sys.modules[package].NAMES)
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations or []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.py"))
    classes = (node for path in files for node in ast.parse(path.read_text(encoding="utf-8")).body)
    return [name for node in classes if isinstance(node, ast.ClassDef) for name in _registered(node)]


def _registered(node: ast.ClassDef) -> list[str]:
    if not any(isinstance(above, ast.Name) and above.id == "register" for above in node.decorator_list):
        return []
    lines = (line for line in node.body if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant))
    return [str(line.value.value) for line in lines if ast.unparse(line.targets[0]) == "name"]  # type: ignore[attr-defined]


def completed(*names: str) -> Callable[[str], list[str]]:
    """Return a completion function for an option's value, or for the last item of a comma-separated list."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in names if name.startswith(last)]

    return complete


def print_json(result: dict[str, Any]) -> None:
    """Print a result as JSON; numbers that are not finite become null."""
    say(json_format.dumps(plain(result), ensure_ascii=False, indent=2, allow_nan=False))


def columns_of(text: str | None) -> list[str]:
    """Return the names of a comma-separated list; names that contain a comma are in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))] if text else []


def words_of(text: str | None) -> list[str]:
    """Return the items of a comma-separated list."""
    return [word.strip() for word in text.split(",")] if text else []


def seeds_of(text: str | None) -> Seeds | None:
    """Parse the option --seeds, if it is given."""
    from drkm.experiments.settings import Seeds

    return None if text is None else Seeds.read(text)


def variant_of(settings: Sequence[str] | None) -> Variant | None:
    """Parse the options --set, if any are given."""
    from drkm.experiments.settings import Variant

    return Variant.read(settings) if settings else None


def numbers(option: str, text: str, kind: Callable[[str], Number]) -> list[Number]:
    """Return the numbers of a comma-separated list."""
    try:
        found = [kind(word) for word in words_of(text)]
    except ValueError:
        found = []
    if not found:
        what = "integers" if kind is int else "numbers"
        raise ValueError(f"{option}: expected {what} with commas between them, got {text!r}")
    return found


def sizes(option: str, text: str, dimensions: Sequence[int] = (2, 3)) -> tuple[int, ...]:
    """Return a size such as 64x64 or 64x64x3; one number alone means a square."""
    parts = re.split("[x×]", text.strip().lower())
    if len(parts) == 1:
        parts *= 2
    if not all(part.isdecimal() and int(part) > 0 for part in parts) or len(parts) not in dimensions:
        example = "64 or 64x48 (height by width)" if 3 not in dimensions else "64x48 or 64x48x3 (height by width)"
        raise ValueError(f"{option}: expected a size like {example}, got {text!r}")
    return tuple(map(int, parts))


def component(option: str, text: str) -> tuple[int, int]:
    """Return layer and index from 1:0."""
    found = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if found is None:
        raise ValueError(f"{option}: expected layer:index, as in 1:0 for the first of layer 1, got {text!r}")
    return int(found[1]), int(found[2])


def components(option: str, text: str) -> Any:
    """Parse components for ConstrDRKM.denoise: None for all, the name of a layer, or pairs."""
    if text == "all":
        return None
    layer = re.fullmatch(r"layer ?(\d+)", text)
    return f"layer {layer[1]}" if layer else [component(option, word) for word in words_of(text)]
