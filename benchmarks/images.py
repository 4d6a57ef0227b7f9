"""Rendered dSprites as rows of 4096 numbers: the image-like data of the scaling benchmarks."""

from __future__ import annotations

import numpy as np

from drkm.datasets import load_dsprites


def sprites(n: int, random_state: int = 0) -> np.ndarray:
    """Return n images as uint8 rows in {0, 1}."""
    images, _ = load_dsprites().sample(n, random_state=random_state)
    return (images.reshape(n, -1) > 0).astype(np.uint8)
