"""Reading of data files of any supported format."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from drkm.files._arrays import read_npy, read_npz, read_parquet
from drkm.files._csv import read_csv
from drkm.files._guarded import reading
from drkm.files._images import SUFFIXES as IMAGE_SUFFIXES
from drkm.files._images import UNREADABLE, Pictures, read_images
from drkm.files._table import Columns, Table, either

SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet")
AS_THEY_ARE = Pictures()


def read_table(
    path: str | PathLike[str],
    name: str = "data",
    *,
    array: str | None = None,
    columns: Columns | None = None,
    pictures: Pictures | None = AS_THEY_ARE,
) -> Table:
    """Read the numbers of a data file, or of a folder of images, one row per sample.

    Parameters
    ----------
    path : path
        .npy, .npz, .csv, .tsv, .parquet, an image, or a folder of images.
    name : str
        Name of the data in messages, and of the array to read if a .npz file has several.
    array : str, optional
        The array of a .npz file to read.
    columns : Columns, optional
        Which columns of a table with names to use.
    pictures : Pictures, optional
        How images become rows; None refuses them.

    Raises
    ------
    ValueError
        If the file is missing, unreadable or of the wrong format.
    """
    file = check_source(path, name, pictures=pictures is not None)
    kind = file.suffix.lower()
    failure = UNREADABLE if kind in IMAGE_SUFFIXES else f"cannot be read as {kind or 'a folder'}"
    with reading(f"{name}: {file}", failure):
        return _read(file, kind, name, array, columns or Columns(), pictures or AS_THEY_ARE)


def check_source(path: str | PathLike[str], name: str = "data", *, pictures: bool = True) -> Path:
    """Return the path of a data file, or raise an error if it is missing or of an unsupported format."""
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in SUFFIXES + (IMAGE_SUFFIXES if pictures else ()) and not (pictures and file.is_dir()):
        if not kind and not file.exists():
            raise ValueError(f"{name}: there is no file {'or folder ' if pictures else ''}{file}")
        more = ", or be an image or a folder of images" if pictures else ""
        raise ValueError(f"{name}: {file} should end in {either(SUFFIXES)}{more}")
    if not file.exists():
        raise ValueError(f"{name}: there is no file {file}")
    if not (file.is_file() or file.is_dir()):
        # What a pipe holds can be read only once, and its size is not known before.
        raise ValueError(f"{name}: {file} is not a regular file, save what it holds to one")
    return file


def is_pictures(path: Path) -> bool:
    """Whether a path is an image, or a folder, which holds images."""
    return path.is_dir() or path.suffix.lower() in IMAGE_SUFFIXES


def check_options(path: Path, **given: object) -> None:
    """Refuse options that do not apply to this file format, so that none is silently ignored."""
    kind = path.suffix.lower()
    pictures = is_pictures(path)
    table = (kind in (".csv", ".tsv", ".parquet"), "a .csv, .tsv or .parquet file")
    uses = {
        "array": (kind == ".npz", "a .npz file"),
        "id": table,
        "drop": table,
        "header": (kind in (".csv", ".tsv"), "a .csv or .tsv file"),
        "resize": (pictures, "images or a folder of them"),
        "grey": (pictures, "images or a folder of them"),
    }
    for option, value in given.items():
        is_used, kinds = uses[option]
        if value is not None and not is_used:
            raise ValueError(f"{option}: is for {kinds}, not for {path}")


def _read(file: Path, kind: str, name: str, array: str | None, columns: Columns, pictures: Pictures) -> Table:
    if is_pictures(file):
        return read_images(file, pictures)
    if kind in (".csv", ".tsv"):
        return read_csv(file, columns)
    if kind == ".parquet":
        return read_parquet(file, columns)
    return read_npy(file) if kind == ".npy" else read_npz(file, array, name, columns)
