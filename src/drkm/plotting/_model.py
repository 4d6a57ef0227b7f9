"""Access to fitted models for figures: public attributes and methods, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.validation import checks
from drkm.wording import unnamed

#: maximum number of training samples that a figure reads
MOST_SAMPLES = 2000


def numbers(values: Any) -> np.ndarray:
    """Return an array, frame or tensor as float64."""
    return np.asarray(values.detach().cpu() if checks.is_tensor(values) else values, dtype=np.float64)


def samples_of(model: Any, X: Any) -> Any:
    """Return X, or the training samples of the model if it has them."""
    # Experiments are listed without torch, and their figures use this style.
    from drkm.files.rows import AbsentRows

    if X is not None:
        return X
    kept = model.fitted_.X if hasattr(model, "fitted_") else None
    if kept is None or isinstance(kept, AbsentRows):
        raise ValueError("X: the model has not kept its samples, pass samples to draw")
    from drkm.inputs import named

    return named(model, numbers(kept[:MOST_SAMPLES]))


def codes_of(model: Any, X: Any) -> np.ndarray:
    """Return the codes of X, or of the training samples."""
    if X is None and not hasattr(model, "codes_"):
        raise ValueError(f"X: {type(model).__name__} has not kept codes, pass samples to draw")
    return numbers(model.codes_ if X is None else model.transform(X))


def columns_of(model: Any, components: Sequence[tuple[int, int]] | None, most: int | None = None) -> list[int]:
    """Return the columns of components given as (layer, index); by default those of layer 1, at most `most`."""
    from drkm.training.parameters import component_columns

    slices = getattr(model, "layer_slices_", None) or (slice(0, len(model.get_feature_names_out())),)
    if components is None:
        return list(range(slices[0].stop))[:most]
    return list(component_columns(list(components), slices))


def names_of(model: Any) -> list[str]:
    """Return the names of the codes."""
    return list(map(str, model.get_feature_names_out()))


def feature_names_of(model: Any, given: Sequence[str] | None) -> list[str]:
    """Return feature names: those given, those of the data frame passed to `fit`, or x0, x1, …."""
    count = model.n_features_in_
    names = given if given is not None else getattr(model, "feature_names_in_", unnamed(count))
    if len(names) != count:
        raise ValueError(f"feature_names: expected {count} names, got {len(names)}")
    return list(map(str, names))


def image_shape(model: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of images after a check against the number of features."""
    if len(shape) not in (2, 3) or int(np.prod(shape)) != model.n_features_in_:
        written = "×".join(map(str, shape))
        raise ValueError(f"shape: expected that of images of {model.n_features_in_} values, got {written}")
    return tuple(shape)


def reconstructed(model: Any, X: Any) -> np.ndarray:
    """Reconstruct samples with the model."""
    return numbers(model.denoise(X) if hasattr(model, "denoise") else model.inverse_transform(model.transform(X)))


def spread_of(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column; that of a constant one is 1."""
    deviation = values.std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)
