"""A small fixed convolutional map of images: Gabor filters, the modulus of their responses, and pooling."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

#: wavelengths of the filters in pixels, and the number of orientations of each
WAVELENGTHS, ORIENTATIONS = (4.0, 8.0), 4
#: side and stride of a filter in pixels, and side of the pooling window in filter positions
SIDE, STEP, POOL = 15, 4, 2
#: images per block
BLOCK = 250


def filtered(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return one row of features for each image.

    Every channel x gives the means over 8 × 8 pixels of x itself and of |x ∗ ψ| for eight complex Gabor filters ψ (two
    wavelengths, four orientations): 9 · 8 · 8 features for 64 × 64 pixels. Nothing is learned and nothing is random.
    """
    rows = [_features(images[i : i + BLOCK]) for i in range(0, len(images), BLOCK)]
    return np.concatenate(rows).astype(np.float64)


def _features(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    pixels = torch.from_numpy(images.astype(np.float32) / np.float32(255))
    planes = pixels[:, None] if pixels.ndim == 3 else pixels.movedim(-1, 1)
    # Each channel of an image is filtered separately.
    flat = planes.reshape(-1, 1, *planes.shape[2:])
    answers = functional.conv2d(flat, _bank(), stride=STEP, padding=SIDE // 2)
    real, imaginary = answers.chunk(2, dim=1)
    moduli = functional.avg_pool2d(torch.hypot(real, imaginary), POOL)
    means = functional.avg_pool2d(flat, STEP * POOL)
    return torch.cat([means, moduli], dim=1).reshape(len(images), -1).numpy()


@cache
def _bank() -> Tensor:
    """Return the filters, first all real parts, then all imaginary parts; each has mean 0 and norm 1."""
    places = torch.arange(SIDE, dtype=torch.float64) - SIDE // 2
    y, x = torch.meshgrid(places, places, indexing="ij")
    filters = []
    for wavelength in WAVELENGTHS:
        window = torch.exp(-(x.square() + y.square()) / (2 * (wavelength / 2) ** 2))
        for k in range(ORIENTATIONS):
            angle = math.pi * k / ORIENTATIONS
            phase = 2 * math.pi / wavelength * (x * math.cos(angle) + y * math.sin(angle))
            wave = torch.polar(window, phase)
            # Subtract a multiple of the window, so that the response to constant grey is 0.
            wave = wave - window * (wave.sum() / window.sum())
            filters.append(wave / wave.abs().square().sum().sqrt())
    bank = torch.stack(filters)[:, None]
    return torch.cat([bank.real, bank.imag]).float()
