"""Compact encoding of arrays for a page: few bits per number, deflated, in base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

#: code of a missing quantised number
MISSING = np.iinfo(np.uint16).max
#: levels to which reconstructed images are rounded: invisible to the eye, and deflates a third smaller
LEVELS = 63


def packed(values: np.ndarray) -> dict[str, Any]:
    """Encode an array of bytes, small integers or floats for the page."""
    kinds = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "f4": np.float32}
    kind = next(name for name, dtype in kinds.items() if values.dtype == dtype)
    # Browsers read little-endian numbers.
    plain = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    text = base64.b64encode(zlib.compress(plain.tobytes(), 9)).decode("ascii")
    return {"type": kind, "shape": list(values.shape), "data": text}


def floats(values: np.ndarray) -> dict[str, Any]:
    """Encode numbers in single precision."""
    return packed(np.asarray(values, dtype=np.float32))


def quantised(values: np.ndarray) -> dict[str, Any]:
    """Encode the columns of an array in 65,535 steps from their minimum to their maximum; NaN is missing.

    Columns are stored one after another. A number is low + step · (stored value).
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    finite = np.isfinite(table)
    low = np.where(finite, table, np.inf).min(axis=0, initial=np.inf)
    high = np.where(finite, table, -np.inf).max(axis=0, initial=-np.inf)
    low, high = (np.where(np.isfinite(ends), ends, 0.0) for ends in (low, high))
    step = (high - low) / (MISSING - 1)
    places = (np.where(finite, table, low) - low) / np.where(step > 0, step, 1.0)
    stored = np.where(finite, np.rint(places), MISSING).astype(np.uint16)
    return packed(stored.T) | {"low": low.tolist(), "step": step.tolist()}


def rounded_pixels(pixels: np.ndarray) -> np.ndarray:
    """Return grey values from 0 to 255 as bytes with a reduced number of levels."""
    return np.rint(np.rint(np.clip(pixels, 0, 255) * (LEVELS / 255)) * (255 / LEVELS)).astype(np.uint8)
