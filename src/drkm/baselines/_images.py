"""Validation and conversion of images for the β-VAE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from drkm.baselines._vae_network import SIZE

SHAPES = ((SIZE, SIZE), (SIZE, SIZE, 3))


def check_image_shape(image_shape: Any) -> tuple[int, ...] | None:
    """Return `image_shape` as a tuple, or raise an error."""
    if image_shape is None:
        return None
    try:
        shape = tuple(int(s) for s in image_shape)
    except (TypeError, ValueError):
        shape = ()
    if shape not in (*SHAPES, (SIZE, SIZE, 1)):
        raise ValueError(f"image_shape: expected None, (64, 64) or (64, 64, 3), got {image_shape!r}")
    return SHAPES[0] if shape[-1] == 1 else shape


def check_images(X: ArrayLike, image_shape: tuple[int, ...] | None) -> tuple[NDArray, tuple[int, ...], bool]:
    """Validate images and convert them to shape (n, 64, 64[, 3]), uint8 or float32 in [0, 1].

    Returns
    -------
    images : array of shape (n, *shape)
    shape : (64, 64) or (64, 64, 3)
    flat : bool
        Whether X has one row per image.
    """
    if hasattr(X, "detach"):
        X = X.detach().cpu().numpy()
    array = np.asarray(X)
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    shape = array.shape[1:]
    flat = array.ndim == 2
    if flat:
        fits = [s for s in SHAPES if math.prod(s) == shape[0]]
        shape = fits[0] if fits else shape
    if shape not in SHAPES or (image_shape is not None and shape != image_shape):
        wanted = image_shape if image_shape is not None else "(64, 64) or (64, 64, 3)"
        raise ValueError(f"X: expected images of shape {wanted}, or those as rows, got shape {array.shape}")
    if len(array) == 0:
        raise ValueError("X: expected at least one image, got none")
    if array.dtype == np.uint8:
        return array.reshape(-1, *shape), shape, flat
    if array.dtype.kind not in "fiub":
        raise ValueError(f"X: expected uint8 or float images, got {array.dtype}")
    low, high = float(array.min()), float(array.max())
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"X: expected values in [0, 1] of images that are not uint8, got {low:g} to {high:g} in {array.dtype}"
        )
    return array.astype(np.float32).reshape(-1, *shape), shape, flat


def to_device(images: NDArray, device: torch.device) -> torch.Tensor:
    """Copy images to the device once, as (n, channels, 64, 64), without changing their type."""
    images = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    return torch.tensor(np.ascontiguousarray(images), device=device)


def as_unit_floats(batch: torch.Tensor) -> torch.Tensor:
    """Convert a batch to float32 in [0, 1]; uint8 images are converted only when needed."""
    return batch.float().div_(255) if batch.dtype == torch.uint8 else batch


def from_logits(logits: torch.Tensor, shape: tuple[int, ...], flat: bool) -> NDArray[np.float32]:
    """Return Bernoulli means as an array of shape (n, *shape), or one row per image."""
    images = torch.sigmoid(logits).permute(0, 2, 3, 1).cpu().numpy()
    return np.ascontiguousarray(images.reshape(len(images), -1) if flat else images.reshape(-1, *shape))
