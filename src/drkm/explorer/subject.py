"""The subject of a page: a model and the samples to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from drkm.estimator import ConstrDRKM
from drkm.files.rows import AbsentRows, in_memory
from drkm.inputs import named, read
from drkm.inputs.preparation import Preparation
from drkm.wording import unnamed

#: images with longer sides are shrunk
LONGEST_SIDE = 96


@dataclass(frozen=True)
class Subject:
    """A model and samples to show.

    Attributes
    ----------
    model : ConstrDRKM
    rows : array, frame or tensor of shape (m, d), optional
        Prepared samples; by default those that the model was trained on.
    preparation : Preparation
        Converts samples to the units of their file, and has the shape of images.
    title : str
        Name of the page.
    columns : sequence of str, optional
        Names of the features; by default those of the data frame that the model was fitted to.
    names : sequence of str, optional
        Names of the samples.
    labels : mapping from name to one entry per sample
        Labels of the samples: numbers, or classes as text.
    """

    model: ConstrDRKM
    rows: Any = None
    preparation: Preparation = field(default_factory=Preparation)
    title: str = "A model"
    columns: Sequence[str] | None = None
    names: Sequence[str] | None = None
    labels: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.model.kernels_[0].is_given:
            raise ValueError("model: a model of a precomputed kernel has no samples to show")
        if self.rows is not None and not isinstance(self.rows, np.ndarray):
            rows = in_memory(read(self.model, self.rows, reset=False))
            object.__setattr__(self, "rows", rows.double().numpy(force=True))
        if self.rows is None and self.training is None:
            raise ValueError("data: the model was saved without its samples, give data to show")
        for name, entries in (("names", self.names), *self.labels.items()):
            if entries is not None and len(entries) != self.count:
                raise ValueError(f"{name}: expected {self.count} entries, one per sample, got {len(entries)}")

    @cached_property
    def training(self) -> np.ndarray | None:
        """The training samples, if the model has them."""
        X = self.model.fitted_.X
        return None if isinstance(X, AbsentRows) else in_memory(X).double().cpu().numpy()

    @cached_property
    def samples(self) -> np.ndarray:
        """The prepared samples to show."""
        return self.rows if self.rows is not None else self.training  # type: ignore[return-value]

    @cached_property
    def decoder(self) -> Callable[[np.ndarray], Any]:
        """A function that decodes codes to samples."""
        return self.model.decoder()

    @property
    def count(self) -> int:
        """Number of shown samples."""
        return len(self.samples)

    @cached_property
    def is_training(self) -> bool:
        """Whether the samples are the training samples of the model, in their order."""
        if self.rows is None or self.training is None:
            return self.rows is None
        # A fit in single precision has rounded its samples.
        return self.rows.shape == self.training.shape and np.allclose(self.rows, self.training, rtol=1e-6, atol=0)

    @property
    def is_image(self) -> bool:
        """Whether a sample is an image."""
        return self.preparation.shape is not None

    @cached_property
    def features(self) -> list[str]:
        """Names of the features."""
        known = getattr(self.model, "feature_names_in_", unnamed(self.model.n_features_in_))
        return list(map(str, known if self.columns is None else self.columns))

    def for_model(self, samples: np.ndarray) -> Any:
        """Return samples for methods of the model."""
        return named(self.model, samples)

    def values(self, samples: np.ndarray) -> np.ndarray:
        """Return samples in the units of their file."""
        return self.preparation.undo(samples)

    @cached_property
    def _images(self) -> Preparation:
        return self.preparation.knowing_white(self.model.fitted_.X)

    @cached_property
    def shrink(self) -> int:
        """Factor by which images are shrunk along each side."""
        height, width = (self.preparation.shape or (1, 1))[:2]
        return -(-max(height, width) // LONGEST_SIDE)

    @cached_property
    def picture_shape(self) -> tuple[int, ...]:
        """Height, width and number of colours of a shown image."""
        height, width, *colours = self.preparation.shape or (1, 1)
        return (-(-height // self.shrink), -(-width // self.shrink), *(colours or [1]))

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample in a page before compression."""
        return int(np.prod(self.picture_shape)) if self.is_image else 4 * len(self.features)

    def pictures(self, samples: np.ndarray) -> np.ndarray:
        """Return images as grey values from 0 to 255, one per row, at the shown size."""
        height, width, *colours = self.preparation.shape or (1, 1)
        images = self._images.pixels(self.values(samples))
        images = images.reshape(len(samples), height, width, *(colours or [1]))
        if self.shrink > 1:
            more = [(0, -side % self.shrink) for side in (height, width)]
            images = np.pad(images, [(0, 0), *more, (0, 0)], mode="edge")
            rows, columns, channels = self.picture_shape
            blocks = images.reshape(len(images), rows, self.shrink, columns, self.shrink, channels)
            images = blocks.mean(axis=(2, 4))
        return images.reshape(len(samples), -1)
