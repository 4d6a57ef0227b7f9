"""The progress bar and log messages of a fit."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from drkm.machine.background import in_background
from drkm.training.plan import Plan

#: seconds between updates of the clock of a bar while nothing else moves it
TICK = 1.0


class _AboveTheBar(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        from tqdm.auto import tqdm

        tqdm.write(self.format(record), file=sys.stderr)


@contextmanager
def log_shown() -> Iterator[None]:
    """Show the library's log messages on stderr inside the context, unless the caller's logging already does."""
    logger = logging.getLogger("drkm")
    if logger.isEnabledFor(logging.INFO) and logger.hasHandlers():
        yield
        return
    handler, level = _AboveTheBar(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def progress_shown(plan: Plan, began: float) -> Iterator[Plan]:
    """Show a progress bar and log messages during a fit; yield the plan that reports to the bar.

    Parameters
    ----------
    plan : Plan
    began : float
        Start time, by `time.perf_counter`.
    """
    bar = ProgressBar(plan.tol, began)
    try:
        with log_shown(), _ticking(bar):
            yield replace(plan, callbacks=(*plan.callbacks, bar), tell=bar.tell)
    finally:
        bar.close()


@contextmanager
def _ticking(bar: ProgressBar) -> Iterator[None]:
    """Keep the clock of a bar running in a terminal during a long step; in a file each update would be a line."""
    if not sys.stderr.isatty():
        yield
        return

    def tick(over: threading.Event) -> None:
        while not over.wait(TICK):
            bar.bar.refresh()

    with in_background(tick, "drkm-progress"):
        yield


class ProgressBar:
    """Shows how far the stationarity has come on the way to the tolerance, on a logarithmic scale."""

    def __init__(self, tol: float, began: float | None = None):
        # Imported here, because a process that only loads a model shows no bar.
        from tqdm.auto import tqdm

        self.tol = max(tol, 1e-16)
        self.begin: float | None = None
        self.bar = tqdm(total=100, bar_format="fit {percentage:3.0f}%|{bar:10}| {elapsed} {desc}")
        # Samples were read before there was a bar, and a resumed fit has spent time before.
        self.bar.start_t -= 0.0 if began is None else time.perf_counter() - began
        self.last = "kernels"
        self.tell(self.last)

    def tell(self, what: str) -> None:
        """Show what is being done while there are no iterations to count."""
        self.bar.set_description_str(what)

    def __call__(self, entry: dict[str, float]) -> None:
        """Move the bar to an entry of the history."""
        stationarity = max(entry["stationarity"], self.tol)
        if self.begin is None or entry["iteration"] == 0:
            self.begin = max(stationarity, 10 * self.tol)
        share = math.log(self.begin / stationarity) / math.log(self.begin / self.tol)
        # A narrow terminal cuts off the end: a number without its exponent would mislead.
        self.last = (
            f"iteration {entry['iteration']}, stationarity {entry['stationarity']:.1e}, J {entry['objective']:.6g}"
        )
        self.bar.set_description_str(self.last, refresh=False)
        self.bar.update(round(100 * min(max(share, self.bar.n / 100), 1.0)) - self.bar.n)

    def close(self) -> None:
        """Show the last iteration and end the bar's line."""
        self.bar.set_description_str(self.last)
        self.bar.close()
