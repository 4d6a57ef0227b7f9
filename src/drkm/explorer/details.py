"""Single samples beside their reconstructions, and how far they are from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from drkm.explorer.packing import floats, packed, rounded_pixels
from drkm.explorer.subject import Subject

#: multiplications that reconstructions may take: about half a minute on one core of 2020
WORK = 1e11
#: bytes of images and of rows of tables, with their reconstructions, that a page holds before they are deflated
IMAGE_BYTES, TABLE_BYTES = 1 << 22, 1 << 21
#: rows reconstructed at once
BATCH = 4096
#: most anomalous samples, which a page always shows
TOP = 100


class Details:
    """Reconstructions of the samples that are shown: of all, or of as many, evenly spread, as time and room allow.

    Attributes
    ----------
    rows : array of int
        The samples that were reconstructed.
    """

    def __init__(self, subject: Subject):
        self.subject = subject
        n, d = subject.model.fitted_.X.shape
        self.rows = _spread(subject.count, int(WORK / (20 * n * (d + 10))))

    @cached_property
    def reconstructions(self) -> np.ndarray:
        """The samples in `rows` as the model reconstructs them from all components."""
        parts = [self.rows[begin : begin + BATCH] for begin in range(0, len(self.rows), BATCH)]
        return np.concatenate([reconstructed(self.subject, part) for part in parts])

    @cached_property
    def spread(self) -> np.ndarray:
        """The deviation of each column among training samples, by which errors are measured; 1 where it is 0."""
        subject = self.subject
        known = subject.values(subject.samples if subject.training is None else subject.training)
        spread = known.std(axis=0)
        return np.where(spread > 1e-12 * np.abs(known).max(axis=0), spread, 1.0)

    def values_of_column(self, index: int) -> np.ndarray:
        """Return one column of the samples in the units of their file."""
        return self._values[:, index]

    @cached_property
    def _values(self) -> np.ndarray:
        return self.subject.values(self.subject.samples)

    def record(self, wanted: Sequence[int] = ()) -> dict[str, Any]:
        """Return samples and reconstructions as the page shows them, the wanted ones included, and which these are."""
        places = np.union1d(self._held(), np.flatnonzero(np.isin(self.rows, wanted)))
        rows = self.rows[places]
        found: dict[str, Any] = {"rows": packed(rows.astype(np.uint32))}
        pairs = {"original": self.subject.samples[rows], "reconstruction": self.reconstructions[places]}
        if self.subject.is_image:
            found |= {name: packed(pixels_of(self.subject, samples)) for name, samples in pairs.items()}
        else:
            found |= {name: floats(self.subject.values(samples)) for name, samples in pairs.items()}
            found["spread"] = self.spread.tolist()
        return found

    def _held(self) -> np.ndarray:
        """Return the places among `rows` of the samples that a page has room for, the most anomalous ones included."""
        most = max(1, (IMAGE_BYTES if self.subject.is_image else TABLE_BYTES) // (2 * self.subject.sample_bytes))
        if most >= len(self.rows):
            return np.arange(len(self.rows))
        top = np.argsort(-anomalies(self.subject, self)[self.rows])[: min(TOP, most // 2)]
        return np.union1d(top, _spread(len(self.rows), most - len(top)))


def anomalies(subject: Subject, details: Details) -> np.ndarray:
    """Return how far each sample is from its reconstruction; NaN where none was made.

    For images the root mean square difference of pixels, for tables that of columns in units of their deviations.
    """
    scores = np.full(subject.count, np.nan)
    scale = 1.0 if subject.is_image else details.spread
    for begin in range(0, len(details.rows), BATCH):
        part = slice(begin, begin + BATCH)
        rows = details.rows[part]
        error = subject.values(details.reconstructions[part]) - subject.values(subject.samples[rows])
        scores[rows] = np.sqrt(np.mean((error / scale) ** 2, axis=1))
    return scores


def reconstructed(subject: Subject, rows: np.ndarray) -> np.ndarray:
    """Return samples as the model reconstructs them from all its components."""
    return np.asarray(subject.model.reconstruct(subject.samples[rows]).points)


def pixels_of(subject: Subject, samples: np.ndarray) -> np.ndarray:
    """Return images as bytes; those with few grey values as they are."""
    pixels = subject.pictures(samples)
    return pixels.astype(np.uint8) if np.isin(pixels, (0.0, 255.0)).all() else rounded_pixels(pixels)


def values_of(subject: Subject, samples: np.ndarray) -> np.ndarray:
    """Return samples as a page shows them: pixels of images, values of tables in the units of their file."""
    return pixels_of(subject, samples) if subject.is_image else subject.values(samples).astype(np.float32)


def _spread(count: int, most: int) -> np.ndarray:
    """Return at most so many numbers below count, evenly spread."""
    return np.arange(count) if most >= count else np.unique(np.linspace(0, count - 1, max(1, most)).astype(int))
