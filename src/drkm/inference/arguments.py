"""Validation of arguments of a fitted model's methods: codes, starts of pre-images, base points of traversals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from drkm import inputs
from drkm.files.rows import Rows
from drkm.inference.typical import typical_row
from drkm.training import parameters
from drkm.validation.samples import check_codes

if TYPE_CHECKING:
    from drkm.inference.inference import Inference


def codes(Z: Any, names: np.ndarray, like: Tensor, called: str = "Z") -> Tensor:
    """Return codes with these names, one for each column of `like`, in its precision and on its device."""
    given = parameters.array(called, Z)
    check_codes(called, given, Z, names)
    return given.to(like)


def start(value: Any, points: Tensor | Rows, like: Tensor) -> Tensor | Rows:
    """Return the start of pre-images: the points themselves, or an array."""
    if not isinstance(value, str):
        return _finite("start", parameters.array("start", value).to(like))
    if value != "point":
        raise ValueError(f'start: expected "point" or an array of points, got {value!r}')
    return points


def sample_row(base: Any, inference: Inference) -> int | None:
    """Return the row of the training sample to move from: by default the most typical one; None for a new point."""
    known = inference.encoded_samples
    if base is None:
        return typical_row(known, inference.fitted)
    if not isinstance(base, int | np.integer) or isinstance(base, bool):
        return None
    if not -len(known) <= base < len(known):
        raise ValueError(f"base: expected a training sample from 0 to {len(known) - 1}, got {base}")
    return int(base)


def one_point(base: Any, features: int) -> Any:
    """Return a new base point as samples of its own type."""
    row = inputs.as_row(base)
    if tuple(row.shape) != (1, features):
        got = repr(base) if np.ndim(base) == 0 else "×".join(map(str, np.shape(base))) + " features"
        expected = f"the row of a training sample or one point of {features} features"
        raise ValueError(f"base: expected {expected}, got {got}")
    return row


def _finite(name: str, numbers: Tensor) -> Tensor:
    if not torch.isfinite(numbers).all():
        raise ValueError(f"{name}: contains NaN or infinity")
    return numbers
