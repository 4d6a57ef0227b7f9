"""Strips for the sliders of a page: samples decoded along every code."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from drkm.explorer.colouring import labelled
from drkm.explorer.details import values_of
from drkm.explorer.packing import floats, packed
from drkm.explorer.subject import Subject
from drkm.inference.typical import typical_row

#: number of values of a code in a strip, from its first to its last percentile among the samples
STEPS, TAIL = 9, 1.0
#: maximum bytes of all strips, and maximum number of base samples
BYTES, MOST_BASES = 1 << 21, 6


class Strips:
    """Samples along the codes, from a few typical ones.

    Attributes
    ----------
    values : array of shape (S, STEPS)
        Values of each code.
    bases : mapping from name to row
        The base samples of the strips.
    """

    def __init__(self, subject: Subject, codes: np.ndarray):
        self.subject, self.codes = subject, codes
        ends = np.percentile(codes, (TAIL, 100 - TAIL), axis=0)
        self.values = np.linspace(ends[0], ends[1], STEPS, axis=1)
        self.bases = self._bases()

    def record(self) -> dict[str, Any]:
        """Return the strips of every base."""
        bases = []
        for name, row in self.bases.items():
            shown = decoded(self.subject, np.vstack([self.codes[row], self.around(self.codes[row])]))
            pack = packed if self.subject.is_image else floats
            base = {"name": name, "row": row, "codes": floats(self.codes[row]), "point": pack(shown[0])}
            bases.append(base | {"strips": pack(shown[1:].reshape(len(self.values), STEPS, -1))})
        return {"values": floats(self.values), "steps": STEPS, "bases": bases}

    def around(self, codes: np.ndarray) -> np.ndarray:
        """Return codes in which one code at a time takes its values, and the others stay."""
        moved = np.repeat(codes[None], self.values.size, axis=0)
        moved[np.arange(self.values.size), np.arange(self.values.size) // STEPS] = self.values.ravel()
        return moved

    def _bases(self) -> dict[str, int]:
        """Return typical samples: of all samples, and of each of the largest classes."""
        everyone = np.arange(len(self.codes))
        found = {"a typical sample": self._typical(everyone)}
        room = min(MOST_BASES, max(1, BYTES // (self.values.size * self.subject.sample_bytes))) - 1
        for name, entries in list(self.subject.labels.items())[:1]:
            if labelled(name, entries)["kind"] == "classes":
                texts = np.array(list(map(str, entries)), dtype=object)
                for text, _ in Counter(texts).most_common(room):
                    found[f"a typical sample of {name} {text}"] = self._typical(everyone[texts == text])
        return found

    def _typical(self, rows: np.ndarray) -> int:
        return int(rows[typical_row(self.codes[rows], self.subject.model.fitted_)])


def decoded(subject: Subject, codes: np.ndarray) -> np.ndarray:
    """Decode codes to samples in the page's format."""
    return values_of(subject, np.asarray(subject.decoder(codes)))
