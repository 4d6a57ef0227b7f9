"""Rendered dSprites as rows of 4096 numbers: the image-like data of the scaling benchmarks."""

from __future__ import annotations

import os

import numpy as np

from drkm.datasets import load_dsprites

BATCH = 4096


def write_sprites(path: str | os.PathLike[str], n: int) -> None:
    """Write n images as bytes in {0, 1} to a .npy file, without holding them all; beyond 737,280 they repeat."""
    dataset = load_dsprites(source="rendered")
    total = int(np.prod(dataset.factor_sizes))
    order = np.random.RandomState(0).permutation(total)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(n, 64 * 64))
    for begin in range(0, n, BATCH):
        chosen = order[np.arange(begin, min(begin + BATCH, n)) % total]
        factors = np.stack(np.unravel_index(chosen, tuple(dataset.factor_sizes)), axis=1)
        out[begin : begin + len(chosen)] = dataset.images_at(factors).reshape(len(chosen), -1) > 0
    out.flush()
