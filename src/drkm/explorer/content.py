"""The content of a page as plain data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from drkm._version import __version__
from drkm.explorer.colouring import labelled
from drkm.explorer.details import Details, anomalies, evenly_spaced
from drkm.explorer.facts import facts
from drkm.explorer.packing import floats, packed, quantised, rounded_pixels
from drkm.explorer.strips import Strips
from drkm.explorer.subject import Subject
from drkm.plotting import COLOURS

#: maximum bytes of table columns that can colour the map
COLUMN_BYTES = 1 << 21
#: maximum bytes of training samples that a page of new samples holds
TRAINING_BYTES = 1 << 21


def record(subject: Subject) -> dict[str, Any]:
    """Return the content of a model's page: texts, numbers and packed arrays, nothing executable."""
    return Content(subject).record()


class Content:
    """A subject and its results, computed once: codes, reconstructions, strips for sliders."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.details = Details(subject)
        self.strips = Strips(subject, self.codes)

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of the shown samples, all layers side by side."""
        return self._encoded[0]

    @cached_property
    def _encoded(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes, and which samples are strange."""
        model, samples = self.subject.model, self.subject.samples
        if self.subject.is_training and model.fitted_.encoder == "stationary":
            # A model that was fitted to tensors has its codes on its device.
            codes = torch.as_tensor(model.codes_).double().cpu().numpy()
            return codes, np.zeros(len(samples), dtype=bool)
        found = model.encode(self.subject.for_model(samples), ambiguity=False)
        return np.asarray(found.codes), np.asarray(found.strange)

    def record(self) -> dict[str, Any]:
        """Return everything that the page shows."""
        subject = self.subject
        return {
            "title": subject.title,
            "version": __version__,
            "count": subject.count,
            "training": subject.is_training,
            "names": None if subject.names is None else list(map(str, subject.names)),
            "codes": quantised(self.codes),
            "unit": float(np.sqrt(subject.model.fitted_.n)),
            "palette": list(COLOURS),
            "colours": self._colours(),
            "anomaly": quantised(anomalies(subject, self.details)),
            "sample": self._kind() | self.details.record(list(self.strips.bases.values())),
            "reference": None if subject.is_training else self._reference(),
            "traverse": self.strips.record(),
            "model": facts(subject),
            "live": False,
        }

    def _kind(self) -> dict[str, Any]:
        """Return the kind of a sample: image or table row."""
        if self.subject.is_image:
            return {"kind": "image", "shape": list(self.subject.picture_shape)}
        return {"kind": "table", "columns": self.subject.features}

    def _colours(self) -> list[dict[str, Any]]:
        """Return the labels by which the map can be coloured, besides codes and anomalies."""
        strange = self._encoded[1]
        labels = dict(self.subject.labels)
        if strange.any():
            labels["strange"] = np.where(strange, "unlike all training samples", "like some").tolist()
        found = [labelled(name, entries) for name, entries in labels.items()]
        if not self.subject.is_image:
            columns = self.subject.features[: max(1, COLUMN_BYTES // (2 * self.subject.count))]
            for index, name in enumerate(columns):
                found.append({"name": name, "kind": "column", "values": quantised(self.details.values[:, index])})
        return found

    def _reference(self) -> dict[str, Any] | None:
        """Return as many training samples as fit, among which neighbours of new ones are searched."""
        subject = self.subject
        if subject.training is None:
            return None
        rows = evenly_spaced(len(subject.training), TRAINING_BYTES // subject.sample_bytes)
        chosen = subject.training[rows]
        codes = np.asarray(subject.model.transform(subject.for_model(chosen)))
        shown = packed(rounded_pixels(subject.pictures(chosen))) if subject.is_image else floats(subject.values(chosen))
        return {"rows": packed(rows.astype(np.uint32)), "codes": floats(codes), "original": shown}
