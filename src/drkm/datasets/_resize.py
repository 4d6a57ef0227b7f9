"""Shrinking images with a Lanczos filter, as two small matrix products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LOBES = 3


def lanczos_matrix(n_in: int, n_out: int) -> NDArray[np.float32]:
    """Return the weights of each output pixel over a line of input pixels, shape (n_out, n_in).

    The kernel `sinc(t)·sinc(t/3)` is widened by the shrinking factor, cut at the border and normalised.
    """
    scale = n_in / n_out
    centre = (np.arange(n_out)[:, None] + 0.5) * scale
    t = (np.arange(n_in)[None] + 0.5 - centre) / scale
    weights = np.where(np.abs(t) < _LOBES, np.sinc(t) * np.sinc(t / _LOBES), 0.0)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def shrink(images: NDArray[np.uint8], size: int = 64) -> NDArray[np.uint8]:
    """Resize square images of shape (n, m, m) or (n, m, m, 3) to (n, size, size[, 3]).

    Rows are filtered first and rounded to uint8, then columns: the order and rounding of the usual image
    libraries, so that results agree with theirs to one grey level.
    """
    weights = lanczos_matrix(images.shape[1], size)
    colour = images.ndim == 4
    planes = np.moveaxis(images, -1, 1) if colour else images
    rows = _to_uint8(planes.astype(np.float32) @ weights.T)
    both = _to_uint8(weights @ rows.astype(np.float32))
    return np.ascontiguousarray(np.moveaxis(both, 1, -1)) if colour else both


def _to_uint8(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)
