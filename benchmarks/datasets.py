"""The speed of drawing dSprites, and the number of images that differ from the originals (with DRKM_DATA).

python -m benchmarks.datasets
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from drkm.datasets import load_dsprites, load_noisy_dsprites

REAL = "dsprites_grid46080.npz"


def images_per_second(draw: Callable[..., object], n: int, repeats: int = 3) -> float:
    """Return the best rate of a few repeats, because other work on the machine only slows it down."""
    best = 0.0
    for seed in range(repeats):
        start = time.perf_counter()
        draw(seed)
        best = max(best, n / (time.perf_counter() - start))
    return best


def main() -> None:
    # Drawing uses only elementwise operations of numpy, which always run on one thread.
    sprites = load_dsprites(source="rendered")
    speed = images_per_second(lambda seed: sprites.sample(20_000, random_state=seed), 20_000)
    print(f"dSprites, drawn, one thread: {speed:,.0f} images/s")
    for definition in ("gaussian", "uniform"):
        noisy = load_noisy_dsprites(source="rendered", definition=definition)
        speed = images_per_second(lambda seed, d=noisy: d.sample(1_000, random_state=seed), 1_000)
        print(f"noisy dSprites ({definition}), one thread: {speed:,.0f} images/s")
    path = Path(os.environ.get("DRKM_DATA", "")) / REAL
    if not os.environ.get("DRKM_DATA") or not path.is_file():
        print(f"real images: skipped, no {REAL} in DRKM_DATA")
        return
    with np.load(path, allow_pickle=False) as file:
        images, factors = file["images"], file["factors"]
    pixels = np.count_nonzero((sprites.images_at(factors) > 0) != (images > 0), axis=(1, 2))
    differing = np.count_nonzero(pixels)
    print(f"real images: {differing} of {len(images):,} differ, by at most {pixels.max()} pixel(s)")


if __name__ == "__main__":
    main()
