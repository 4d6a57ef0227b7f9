"""The explorer: sizes of its pages, and times to make one, to follow a drag and to answer a slider of a live page.

Times are processor times with one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.chromium import CHROMIUM, Chromium
from benchmarks.kernel_pca import cpu
from drkm import ConstrDRKM
from drkm.datasets import load_dsprites
from drkm.explorer import Subject, write_page
from drkm.explorer.page import script
from drkm.explorer.strips import decoded
from drkm.inputs.preparation import Preparation

REPEATS = 15
DRAGS = 6
#: time of a drag from the mouse event until the points are drawn
DELAYS = """
window.delays = [];
document.getElementById("overlay").addEventListener("pointermove", (event) => {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => window.delays.push(performance.now() - event.timeStamp);
    port2.postMessage(0);
  });
}, true);
"""


@dataclass(frozen=True)
class Answer:
    """Milliseconds of a page per frame of a drag: processor time, and time until the points were drawn."""

    processor: float
    delay: float


def sprites(n: int = 400) -> Subject:
    data = load_dsprites(source="rendered")
    images, factors = data.sample(n, random_state=0)
    model = ConstrDRKM((10, 5)).fit(images.reshape(n, -1) / 255)
    labels = dict(zip(data.factor_names, factors.T.tolist(), strict=True))
    return Subject(model, preparation=Preparation(shape=(64, 64), white=1.0), title="sprites", labels=labels)


def points(n: int = 50_000, trained: int = 500) -> Subject:
    rng = np.random.RandomState(0)
    z, F, b, A = rng.rand(n, 3), 2 * rng.randn(3, 40), 6.28 * rng.rand(40), rng.randn(40, 10)
    X = np.cos(z @ F + b) @ A / np.sqrt(40) + 0.05 * rng.randn(n, 10)
    labels = {"place": (7 * z[:, 0]).astype(int).tolist()}
    return Subject(ConstrDRKM(10).fit(X[:trained]), X, title="points", labels=labels)


def answers_to_drags(browser: Chromium, path: Path) -> list[Answer]:
    """Return the times that a page in a file took to follow each of several drags across its map."""
    browser.call("Performance.enable", timeDomain="threadTicks")
    browser.open(path.as_uri())
    browser.value(DELAYS)
    x, y = browser.middle("#overlay")
    found = []
    for _ in range(DRAGS):
        browser.value("window.delays.length = 0")
        before = processor_seconds(browser)
        browser.drag((x, y), *[(x + 3 * i, y + 2 * i) for i in range(30)])
        delays = browser.until("window.delays.length >= 10 && window.delays")
        spent = 1e3 * (processor_seconds(browser) - before) / len(delays)
        found.append(Answer(spent, float(np.median(delays))))
    return found


def processor_seconds(browser: Chromium) -> float:
    found = browser.call("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in found if one["name"] == "TaskDuration")


def time_drags(path: Path) -> None:
    if CHROMIUM is None:
        print("\ndrags are timed in Chromium, which is not on the PATH")
        return
    with Chromium(path.parent) as browser:
        version = browser.call("Browser.getVersion")["product"]
        answers = answers_to_drags(browser, path)
    took, delays = [answer.processor for answer in answers], [answer.delay for answer in answers]
    print(
        f"\na frame of a drag of 50,000 points, {version}, {DRAGS} drags: {min(took):.1f} to {max(took):.1f} ms of "
        f"processor time; drawn {min(delays):.0f} to {max(delays):.0f} ms after the event of the mouse"
    )


def time_decoding(subject: Subject) -> None:
    codes, took = subject.model.codes_, []
    for row in range(REPEATS):
        began = time.process_time()
        decoded(subject, 1.05 * codes[row : row + 1])
        took.append(time.process_time() - began)
    print(f"\none of the sprites decoded: {1e3 * np.median(took[1:]):.0f} ms (least {1e3 * min(took):.0f} ms)")


def main() -> None:
    print(f"{cpu()}; the script of a page has {len(script()) / 1e3:.0f} kB\n")
    print("| page | MB | at most | s of processor time |\n|---|---:|---:|---:|")
    images, table = sprites(), points()
    named = (("400 sprites of 64×64, 15 codes", images, 3), ("50,000 points, 10 codes", table, 8))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        for name, subject, most in named:
            began = time.process_time()
            write_page(subject, path)
            size = path.stat().st_size / 1e6
            print(f"| {name} | {size:.2f} | {most} | {time.process_time() - began:.1f} |", flush=True)
        time_drags(path)
    time_decoding(images)


if __name__ == "__main__":
    main()
