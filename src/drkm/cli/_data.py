"""Data files of a model: later commands repeat and undo the preparation that fit did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drkm import files
from drkm.cli import _options as options
from drkm.cli._options import Reading, TrainingData
from drkm.cli._outcome import warn
from drkm.cli._table_notes import tell_far_entries, tell_folders, tell_names
from drkm.inputs.preparation import WHITE, Preparation
from drkm.wording import counted, unnamed

if TYPE_CHECKING:
    from drkm import ConstrDRKM
    from drkm.imputation import Filling

#: a file that is read without options
PLAIN = Reading()


def prepare(path: Path, given: TrainingData, *, standard_tables: bool = False) -> tuple[files.Table, Preparation]:
    """Read a file, and return its table and the preparation of its rows, for now and later."""
    columns = replace(training_columns(given, gaps=given.impute is not None), purpose="training")
    resize = None if given.resize is None else options.sizes("resize", given.resize, (2,))
    shape = None if given.shape is None else options.sizes("shape", given.shape)
    pictures = files.Pictures(size=None if resize is None else (resize[0], resize[1]), grey=given.grey)
    table = files.read_table(path, array=given.array, columns=columns, pictures=pictures)
    tell_names(path, table)
    tell_folders(path)
    if shape is not None:
        table = replace(table, shape=check_shape(shape, table.values.shape[1]))
    eight_bits = table.pictures or (table.shape is not None and table.values.dtype == np.uint8)
    facts: dict[str, Any] = {
        "columns": table.columns,
        "shape": table.shape,
        "white": WHITE if eight_bits else None,
        "resize": resize is not None,
        "grey": given.grey,
        "id": table.title if table.found_id else given.id,
    }
    check_finite(path, table, "training", gaps=given.impute is not None)
    tell_far_entries(path, table)
    values = table.values
    if given.impute is not None:
        facts["gaps"] = filling_of(path, table, given.impute)
        values = facts["gaps"].fill(values)
    if given.scale == "standard" or (standard_tables and given.scale == "auto" and table.shape is None):
        return table, Preparation.standardizing(values, **facts)
    return table, Preparation(scale=_divisor(given.scale, WHITE if eight_bits else 1.0), **facts)


@dataclass(frozen=True)
class TrainingRows:
    """Prepared rows to train on, and their positions in the file if they were drawn."""

    rows: np.ndarray
    places: list[int] | None = None

    def tell_strange(self, model: ConstrDRKM, columns: Sequence[str] | None) -> None:
        """Warn of rows and columns that are strange to the model, by their names in the file."""
        import torch

        from drkm.strange_data import complaints

        for told in complaints(model.kernels_[0], torch.from_numpy(self.rows), model.center, columns, self.places):
            warn(f"data{told.removeprefix('X')}")


def drawn(rows: np.ndarray, count: int | None, seed: int) -> TrainingRows:
    """Return so many of the rows, drawn at random and in their order; None keeps all."""
    if count is None:
        return TrainingRows(rows)
    if count > len(rows):
        raise ValueError(f"sample: there are only {len(rows)} rows, got {count}")
    places = np.sort(np.random.default_rng(seed).choice(len(rows), count, replace=False))
    return TrainingRows(rows[places], places.tolist())


def training_columns(given: Reading, *, gaps: bool) -> files.Columns:
    """Return which columns of a table are data, for a model that is not trained yet."""
    return files.Columns(given.id, given.dropped, header=given.header, gaps=gaps, finds_id=True)


def _divisor(scale: str, default: float) -> float:
    if scale == "auto":
        return default
    try:
        number = float(scale)
    except ValueError:
        number = float("nan")
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"scale: expected a positive number, standard or auto, got {scale!r}")
    return number


def check_shape(shape: Sequence[int], features: int) -> tuple[int, ...]:
    """Return the shape of an image if it matches the number of values per row."""
    if int(np.prod(shape)) != features:
        written = "×".join(map(str, shape))
        raise ValueError(f"shape: {written} is {int(np.prod(shape))} values, a row has {features}")
    return tuple(shape)


def labels_of(given: str, data: Path | None, header: bool | None, count: int) -> dict[str, Sequence[str]]:
    """Return labels by name, one entry per sample: from a separate file, or from columns of the data."""
    path = Path(given)
    if path.suffix.lower() in files.SUFFIXES and path.is_file():
        known = _label_file(path, header, count)
    elif data is not None and data.suffix.lower() in files.TABLES:
        known = files.read_labels(data, options.columns_of(given), header=header)
    else:
        raise ValueError(f"labels: there is no file {given}, and no table of data that could have such a column")
    for name, entries in known.items():
        if len(entries) != count:
            raise ValueError(f"labels: {name} has {len(entries)} entries, there are {counted(count, 'sample')}")
    return known


def _label_file(path: Path, header: bool | None, count: int) -> dict[str, Sequence[str]]:
    """Return the columns of a file of labels; the number of samples says whether its first line is a header."""
    known = files.read_labels(path, header=header)
    surplus = {len(entries) - count for entries in known.values()}
    if path.suffix.lower() == ".parquet" or surplus not in ({-1}, {1}):
        return known
    with_other = files.read_labels(path, header=surplus == {1})
    fits = all(len(entries) == count for entries in with_other.values())
    return with_other if fits else known


def filling_of(path: Path, table: files.Table, how: str) -> Filling:
    """Learn how to fill gaps like those of a table."""
    from drkm.imputation import filling_of

    empty = np.flatnonzero(np.isnan(table.values).all(axis=0))
    if len(empty):
        name = table.columns[empty[0]] if table.columns else str(empty[0])
        raise ValueError(f"data: {path} has no number in column {name!r}, leave it out with --drop")
    return filling_of(table.values, how)


def check_finite(path: Path, table: files.Table, purpose: str = "", *, gaps: bool = False) -> None:
    """Raise an error with the place of a missing value, or of an infinite one if gaps are filled."""
    finite = ~np.isinf(table.values) if gaps else np.isfinite(table.values)
    if not finite.all():
        row, column = (int(index) for index in np.argwhere(~finite)[0])
        name = repr(table.columns[column]) if table.columns else str(column)
        mend = files.how_to_fill(purpose) if np.isnan(table.values).any() and not gaps else "remove such rows"
        raise ValueError(
            f"data: {path} has {table.values[row, column]} in row {row + 1} of column {name} and no finite number in "
            f"{(~finite).sum()} of its {finite.size} entries: {mend}"
        )


class PreparedModel:
    """A model from a file, with the preparation of its data.

    Attributes
    ----------
    model : ConstrDRKM
    preparation : Preparation
    columns : names of the features, if the training data had them
    """

    def __init__(self, path: Path, device: str = "cpu"):
        from drkm.loading import load_prepared

        with files.called("model"):
            self.model: ConstrDRKM
            self.model, self.preparation = load_prepared(path, device=device)
        # Columns are matched by name here, so the estimator, which would warn about bare arrays, need not know them.
        self.columns = self.preparation.columns
        if hasattr(self.model, "feature_names_in_"):
            self.columns = tuple(map(str, self.model.feature_names_in_))
            del self.model.feature_names_in_

    def read(self, path: Path, given: Reading = PLAIN) -> tuple[files.Table, np.ndarray]:
        """Read a file, and return its table and its rows prepared for the model."""
        prepared = self.preparation
        self._check_kind(path)
        shape, gaps = prepared.shape, prepared.gaps is not None
        size = (shape[0], shape[1]) if prepared.resize and shape is not None else None
        table = files.read_table(
            path,
            array=given.array,
            columns=files.Columns(
                given.id,
                given.dropped,
                only=self.columns,
                header=given.header,
                usual_id=prepared.id,
                gaps=gaps,
                purpose="model",
            ),
            pictures=files.Pictures(size, shape, prepared.grey),
        )
        tell_folders(path)
        check_finite(path, table, "model", gaps=gaps)
        if table.pictures and prepared.white is None:
            raise ValueError(
                f"data: {path} holds values from 0 to 255, the model was trained on an array or on floating-point "
                "images, whose white is not known: fit it on pictures like these, or give it an array"
            )
        wanted = self.model.n_features_in_
        if table.values.shape[1] != wanted:
            raise ValueError(f"data: {path} has {table.values.shape[1]} columns, the model was trained on {wanted}")
        return table, prepared.apply(table.values)

    def _check_kind(self, path: Path) -> None:
        """Refuse images for a model of tables before they are read."""
        if files.is_pictures(path) and self.columns is not None:
            what = "a folder of images" if path.is_dir() else "an image"
            raise ValueError(
                f"data: {path} is {what}, the model was trained on a table with the columns "
                f"{files.listed(self.columns)}: give it a table, or fit a model to the images"
            )

    @staticmethod
    def numpy(values: Any) -> np.ndarray:
        """Convert output of the model, which may be a tensor, to an array."""
        return values.cpu().numpy() if hasattr(values, "cpu") else np.asarray(values)

    def feature_names(self) -> list[str]:
        """Return column names for data that the model returns."""
        return list(self.columns or unnamed(self.model.n_features_in_))

    def image_shape(
        self, asked: tuple[int, ...] | None, instead: str = "or write to .npy, .npz or .csv"
    ) -> tuple[int, ...]:
        """Return the shape of the model's images, or raise an error that says how to pass it."""
        if asked is not None:
            return check_shape(asked, self.model.n_features_in_)
        if self.preparation.shape is None:
            raise ValueError(
                f"shape: the model was not trained on images; pass their shape, as in --shape 64x64, {instead}"
            )
        return self.preparation.shape

    def pixels(self, values: np.ndarray) -> np.ndarray:
        """Return values in the units of the file as grey values from 0 to 255."""
        return self.preparation.knowing_white(self.model.fitted_.X).pixels(values)


class Shown(NamedTuple):
    """A model and the samples that a figure or a page of it shows.

    fitted : the model
    table : the file of the samples; None for those of the fit
    rows : prepared samples; None for those of the fit
    shape : shape of images, None for tables
    labels : labels by name, one entry per sample
    """

    fitted: PreparedModel
    table: files.Table | None
    rows: np.ndarray | None
    shape: tuple[int, ...] | None
    labels: dict[str, Sequence[str]]

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.fitted.model.fitted_.n if self.rows is None else len(self.rows)


def shown(path: Path, data: Path | None, labels: str | None, reading: Reading, shape: str | None, device: str) -> Shown:
    """Read a model, the samples to show if they are not those of the fit, and their labels."""
    from drkm.files.rows import AbsentRows

    fitted = PreparedModel(path, device)
    table, rows = (None, None) if data is None else fitted.read(data, reading)
    if rows is None and isinstance(fitted.model.fitted_.X, AbsentRows):
        raise ValueError("data: the model was saved without its samples, give data to show")
    image = fitted.preparation.shape if shape is None else fitted.image_shape(options.sizes("shape", shape))
    found = Shown(fitted, table, rows, image, {})
    return found if labels is None else found._replace(labels=labels_of(labels, data, reading.header, found.n))
