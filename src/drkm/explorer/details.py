"""Samples with their reconstructions and reconstruction errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from drkm.explorer.packing import floats, packed, rounded_pixels
from drkm.explorer.subject import Subject

#: maximum number of multiplications for reconstructions: about half a minute on one core of 2020
WORK = 1e11
#: maximum bytes of images and of table rows, with reconstructions, in a page before compression
IMAGE_BYTES, TABLE_BYTES = 1 << 22, 1 << 21
#: rows reconstructed at once
BATCH = 4096
#: number of most anomalous samples, which a page always holds
TOP = 100


class Details:
    """Reconstructions of the shown samples: of all, or of as many, evenly spaced, as time and space allow.

    Attributes
    ----------
    rows : array of int
        Indices of the reconstructed samples.
    """

    def __init__(self, subject: Subject):
        self.subject = subject
        n, d = subject.model.fitted_.X.shape
        self.rows = evenly_spaced(subject.count, int(WORK / (20 * n * (d + 10))))

    @cached_property
    def reconstructions(self) -> np.ndarray:
        """Reconstructions of the samples in `rows` from all components."""
        parts = [self.rows[begin : begin + BATCH] for begin in range(0, len(self.rows), BATCH)]
        return np.concatenate([reconstructed(self.subject, part) for part in parts])

    @cached_property
    def spread(self) -> np.ndarray:
        """Standard deviation of each column among training samples, the unit of errors; 1 where it is 0."""
        subject = self.subject
        known = subject.values(subject.samples if subject.training is None else subject.training)
        spread = known.std(axis=0)
        return np.where(spread > 1e-12 * np.abs(known).max(axis=0), spread, 1.0)

    @cached_property
    def values(self) -> np.ndarray:
        """The samples in the units of their file."""
        return self.subject.values(self.subject.samples)

    def record(self, wanted: Sequence[int] = ()) -> dict[str, Any]:
        """Return samples and reconstructions in the page's format, including the wanted ones, and their indices."""
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
        """Return the positions in `rows` of the samples that a page holds, including the most anomalous ones."""
        most = max(1, (IMAGE_BYTES if self.subject.is_image else TABLE_BYTES) // (2 * self.subject.sample_bytes))
        if most >= len(self.rows):
            return np.arange(len(self.rows))
        top = np.argsort(-anomalies(self.subject, self)[self.rows])[: min(TOP, most // 2)]
        return np.union1d(top, evenly_spaced(len(self.rows), most - len(top)))


def anomalies(subject: Subject, details: Details) -> np.ndarray:
    """Return the distance of each sample to its reconstruction; NaN if there is none.

    For images this is the root mean square difference of pixels, for tables that of columns in units of their
    deviations.
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
    """Reconstruct samples from all components of the model."""
    return np.asarray(subject.model.reconstruct(subject.for_model(subject.samples[rows])).points)


def pixels_of(subject: Subject, samples: np.ndarray) -> np.ndarray:
    """Return images as bytes; images with few grey values are not rounded."""
    pixels = subject.pictures(samples)
    return pixels.astype(np.uint8) if np.isin(pixels, (0.0, 255.0)).all() else rounded_pixels(pixels)


def values_of(subject: Subject, samples: np.ndarray) -> np.ndarray:
    """Return samples in the page's format: pixels of images, values of tables in the units of their file."""
    return pixels_of(subject, samples) if subject.is_image else subject.values(samples).astype(np.float32)


def evenly_spaced(count: int, most: int) -> np.ndarray:
    """Return at most `most` evenly spaced integers below `count`."""
    return np.arange(count) if most >= count else np.unique(np.linspace(0, count - 1, max(1, most)).astype(int))
