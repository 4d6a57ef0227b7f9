"""The explorer: sizes of its pages, and what it takes to make one and to answer a slider of a live page.

Times are those of the processor, with one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.kernel_pca import cpu
from drkm import ConstrDRKM
from drkm.datasets import load_dsprites
from drkm.explorer import Subject, page
from drkm.explorer.content import Content
from drkm.explorer.page import script
from drkm.explorer.strips import decoded
from drkm.inputs.preparation import Preparation

REPEATS = 15


def sprites(n: int = 400) -> Subject:
    images, _ = load_dsprites(source="rendered").sample(n, random_state=0)
    model = ConstrDRKM((10, 5)).fit(images.reshape(n, -1) / 255)
    return Subject(model, preparation=Preparation(shape=(64, 64), white=1.0))


def points(n: int = 50_000, trained: int = 500) -> Subject:
    rng = np.random.RandomState(0)
    z, F, b, A = rng.rand(n, 3), 2 * rng.randn(3, 40), 6.28 * rng.rand(40), rng.randn(40, 10)
    X = np.cos(z @ F + b) @ A / np.sqrt(40) + 0.05 * rng.randn(n, 10)
    return Subject(ConstrDRKM(10).fit(X[:trained]), X)


def main() -> None:
    print(f"{cpu()}; the script of a page has {len(script()) / 1e3:.0f} kB\n")
    print("| page | MB | s of processor time |\n|---|---|---|")
    for name, subject in (("400 sprites of 64×64, 15 codes", sprites()), ("50,000 points, 10 codes", points())):
        began = time.process_time()
        text = page(Content(subject).record())
        print(f"| {name} | {len(text.encode()) / 1e6:.2f} | {time.process_time() - began:.1f} |", flush=True)
    subject = sprites()
    codes = subject.model.codes_
    took = []
    for row in range(REPEATS):
        began = time.process_time()
        decoded(subject, 1.05 * codes[row : row + 1])
        took.append(time.process_time() - began)
    print(f"\none of the sprites decoded: {1e3 * np.median(took[1:]):.0f} ms (least {1e3 * min(took):.0f} ms)")


if __name__ == "__main__":
    main()
