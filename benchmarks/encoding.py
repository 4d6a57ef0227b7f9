"""Encoding new images against training images, compared with the plain kernel product that it contains.

python -m benchmarks encoding                                     8,192 points against 5,000
python -m benchmarks.encoding --points 1000000                    a million, as long as it takes
python -m benchmarks.encoding --points 1000000 --device cuda

The images (rendered dSprites, d = 4096) are in a file of bytes and are read in batches. The plain product is
k_1(x, X)H_1 for the same batches, with everything that depends on the training images computed beforehand. Both are
timed alternately, so that other work on the machine affects both. Memory is the rise of the peak of the process above
that of the fit.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.images import write_sprites
from benchmarks.scaling_cell import clock, peak
from drkm import ConstrDRKM
from drkm.files.rows import open_rows
from drkm.gram import Cross

TURN = 1 << 14


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=5000)
    parser.add_argument("--points", type=int, default=8192)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        write_sprites(path, asked.train + asked.points)
        images = np.load(path, mmap_mode="r")
        begin = clock(asked.device)
        model = ConstrDRKM((10, 5), eta=1.0, tol=1e-4, device=asked.device).fit(
            images[: asked.train].astype(np.float64)
        )
        print(f"fit of {asked.train:,} images with eta=1: {clock(asked.device) - begin:.0f} s", flush=True)
        run(model, path, asked.train, asked.points, asked.device)


def run(model: ConstrDRKM, path: Path, begin: int, points: int, device: str) -> None:
    """Time both alternately and print the ratio."""
    fitted = model.fitted_
    H1 = fitted.layer_codes()[0]
    cross = Cross(fitted.kernels[0], fitted.X)
    rows = open_rows(path).to(dtype=H1.dtype, device=H1.device)
    codes = np.empty((points, 15))
    images = np.load(path, mmap_mode="r")

    def plain(first: int, last: int) -> None:
        for part in model._inference.batches(last - first):
            cross(rows[first + part.start : first + part.stop]) @ H1

    # The first batches include what is computed only once.
    plain(begin, begin + 64)
    model.transform(images[begin : begin + 64])
    held, middle = peak(device), 0
    spent = {"plain": 0.0, "encoded": 0.0}
    for first in range(begin, begin + points, TURN):
        last = min(first + TURN, begin + points)
        start = clock(device)
        plain(first, last)
        half = clock(device)
        model.transform(images[first:last], out=codes[first - begin : last - begin])
        spent["plain"] += half - start
        spent["encoded"] += clock(device) - half
        middle = middle or (peak(device) if first - begin >= points // 2 else 0)
    above = [(value - held) / 1e6 for value in (middle or held, peak(device))]
    print(f"{points:,} images: plain product {spent['plain']:.1f} s, encoding {spent['encoded']:.1f} s")
    print(f"ratio {spent['encoded'] / spent['plain']:.2f}, {1e6 * spent['encoded'] / points:.0f} s for a million")
    print(f"peak above that of the fit: {above[0]:.0f} MB after half of the points, {above[1]:.0f} MB after all")


if __name__ == "__main__":
    main()
