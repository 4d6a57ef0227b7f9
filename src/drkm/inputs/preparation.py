"""The preparation of rows before a fit, stored with the model so that later rows are prepared in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import Rows, largest_values
from drkm.inputs.samples import is_frame
from drkm.machine.memory import require
from drkm.validation import parts
from drkm.validation.parts import Part

#: grey value of white in 8-bit images
WHITE = 255.0
#: between these limits are numbers whose squares can be summed, also those of their differences
SMALL, LARGE = 1e-120, 1e140
#: prefix of the names of imputation parts
GAPS = "gaps."


class Gaps(Protocol):
    """Fills gaps (NaN) in the units of the file (`drkm.imputation.Filling`)."""

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Return values with their gaps filled."""

    def describe(self) -> str:
        """Return a short description."""

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the plain values to write."""


@dataclass(frozen=True)
class Preparation:
    """Prepared samples are (values - offset) / scale, after gaps have been filled.

    Attributes
    ----------
    offset, scale : float or array of shape (d,)
    columns : names of the columns, if the training file had them
    shape : shape of one sample, for images
    white : value of white in images, if it is known; otherwise the largest training value
    resize, grey : whether images are resized to that shape, and whether they are converted to grey
    id : name of the column that named the rows
    gaps : fills missing values, if there may be any
    """

    offset: float | np.ndarray = 0.0
    scale: float | np.ndarray = 1.0
    columns: tuple[str, ...] | None = None
    shape: tuple[int, ...] | None = None
    white: float | None = None
    resize: bool = False
    grey: bool = False
    id: str | None = None
    gaps: Gaps | None = None

    @classmethod
    def standardizing(cls, values: np.ndarray, **more: Any) -> Preparation:
        """Return the preparation that gives every column mean 0 and variance 1; constant columns become 0."""
        _check_room(values)
        return cls(*standard_units(values), **more)

    def apply(self, values: Any) -> np.ndarray:
        """Prepare values for the model; columns of a data frame are matched by name, like those of tables in files."""
        if self.columns is not None and is_frame(values):
            values = _by_name(values, self.columns)
        samples = _own_copy(values)
        if self.gaps is not None:
            samples = self.gaps.fill(samples)
        samples -= self.offset
        samples /= self.scale
        return samples

    def undo(self, samples: np.ndarray) -> np.ndarray:
        """Convert prepared samples back to the units of the file."""
        values = _own_copy(samples)
        values *= self.scale
        values += self.offset
        return values

    def knowing_white(self, X: Tensor | Rows) -> Preparation:
        """Return the preparation with the value of white: the largest value of the samples X if no other is known."""
        if self.white is not None:
            return self
        return replace(self, white=float(self.undo(largest_values(X).cpu().numpy()).max()))

    def pixels(self, values: np.ndarray) -> np.ndarray:
        """Convert values in the units of the file to grey values from 0 to 255; white must be known."""
        return np.clip(values * (WHITE / self.white if self.white and self.white > 0 else 1.0), 0.0, WHITE)

    @property
    def grey_limits(self) -> tuple[float, float] | None:
        """Black and white in prepared images, if white is known and all pixels are scaled alike."""
        if self.white is None or np.ndim(self.scale) or np.ndim(self.offset):
            return None
        black, white = ((value - self.offset) / self.scale for value in (0.0, self.white))
        return float(black), float(white)

    @property
    def changes_values(self) -> bool:
        """Whether prepared samples differ from the values of the file."""
        return bool(np.any(self.offset != 0.0) or np.any(self.scale != 1.0))

    def describe(self) -> str:
        """Return a short description, or an empty string."""
        done = [] if self.gaps is None else [self.gaps.describe()]
        # A file holds one column's mean and deviation as single numbers; only those have an offset.
        if np.ndim(self.scale) or np.any(self.offset != 0):
            done.append("columns standardised")
        elif self.scale != 1:
            done.append(f"values divided by {self.scale:g}")
        if self.shape is not None:
            done.append(f"images of {'x'.join(map(str, self.shape))}")
        return ", ".join(done)

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the plain values to write."""
        tensors = {
            name: torch.from_numpy(np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64)))
            for name in ("offset", "scale")
        }
        plain = {name: getattr(self, name) for name in ("columns", "shape", "white", "resize", "grey", "id")}
        if self.gaps is not None:
            of_gaps, plain["gaps"] = self.gaps.parts()
            tensors |= {GAPS + name: tensor for name, tensor in of_gaps.items()}
        return tensors, plain

    @classmethod
    def from_parts(
        cls, tensors: dict[str, Tensor], plain: dict[str, Any], features: int, gaps: Gaps | None = None
    ) -> Preparation:
        """Rebuild the preparation for this many features from `parts`; without parts values are not changed.

        Invalid parts are refused with an error.
        """
        if not plain:
            return cls()
        parts.check(plain, _plain_parts(features))
        parts.check(tensors, dict.fromkeys(("offset", "scale"), _row_or_number(features)), others=True)
        if (tensors["scale"] == 0).any():
            raise ValueError("scale: expected numbers other than 0")
        columns, shape = plain["columns"], plain["shape"]
        if shape is not None and math.prod(shape) != features:
            raise ValueError(f"shape: expected one of {features} values, got {shape}")
        return cls(
            _number_or_row(tensors["offset"]),
            _number_or_row(tensors["scale"]),
            None if columns is None else tuple(columns),
            None if shape is None else tuple(shape),
            plain["white"],
            plain["resize"],
            plain["grey"],
            plain.get("id"),
            gaps,
        )


def standard_units(
    X: np.ndarray, mean: Callable[..., np.ndarray] = np.mean, std: Callable[..., np.ndarray] = np.std
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of columns, 1 for constant columns.

    With `nanmean` and `nanstd` columns may have gaps (NaN), if each has a number.
    """
    low, high = (ufunc.reduce(X, axis=0) for ufunc in (np.fmin, np.fmax))
    largest = np.maximum(*(np.abs(end, dtype=np.float64) for end in (low, high)))
    unit: Any = 1.0
    if not ((largest == 0) | ((largest > SMALL) & (largest < LARGE))).all():
        # In units of powers of 2, which is exact: squares of very large or small numbers would overflow or vanish.
        unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)
        X = X / unit
    middle, spread = (unit * part(X, axis=0, dtype=np.float64) for part in (mean, std))
    # The mean of equal values is rounded, the more the more there are, so that their deviation from it is not always 0.
    is_constant = low == high
    middle = np.where(is_constant, low, middle)
    varies = ~is_constant & (spread > 10 * np.finfo(np.float64).eps * np.abs(middle))
    return middle, np.where(varies, spread, 1.0)


def _own_copy(values: Any) -> np.ndarray:
    """Return a copy of values, the only one that is made, if there is memory for it."""
    _check_room(values)
    return np.array(values, dtype=np.float64)


def _check_room(values: Any) -> None:
    """Raise an error unless there is memory for these values at eight bytes each."""
    size = np.size(values)
    require(8 * size, torch.device("cpu"), f"X: a prepared copy of {size} values")


def _by_name(frame: Any, columns: Sequence[str]) -> Any:
    places = {str(name): place for place, name in enumerate(frame.columns)}
    missing = [name for name in columns if name not in places]
    if missing:
        raise ValueError(f"values: lacks {', '.join(missing)} of the columns that the model was trained on")
    return frame.iloc[:, [places[name] for name in columns]]


def _plain_parts(features: int) -> dict[str, Part]:
    return {
        "columns": parts.nullable(parts.several(parts.text, features, features)),
        "shape": parts.nullable(parts.several(parts.count(1), 3)),
        "white": parts.nullable(parts.number()),
        "resize": parts.truth,
        "grey": parts.truth,
        "id": parts.optional(parts.nullable(parts.text)),
        "gaps": parts.optional(parts.group({}, others=True)),
    }


def _row_or_number(features: int) -> Part:
    def part(name: str, value: Any) -> None:
        single = isinstance(value, Tensor) and value.shape == (1,)
        parts.tensor(1 if single else features, dtype=torch.float64)(name, value)

    return part


def _number_or_row(tensor: Tensor) -> float | np.ndarray:
    return float(tensor) if tensor.numel() == 1 else tensor.double().numpy()
