"""What a fit shows on the way: a progress bar, and what it says in the log."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm


class _AboveTheBar(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=sys.stderr)


@contextmanager
def log_shown() -> Iterator[None]:
    """Show the library's messages on standard error for a while, unless the caller's own settings already do."""
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
def progress_shown(tol: float | None) -> Iterator[tuple[ProgressBar, ...]]:
    """Show a bar and the library's messages on the way to a tolerance; give the bar as a callback, or nothing."""
    if tol is None:
        yield ()
        return
    bar = ProgressBar(tol)
    try:
        with log_shown():
            yield (bar,)
    finally:
        bar.close()


class ProgressBar:
    """Shows how far the stationarity has come on the way to the tolerance, on a logarithmic scale."""

    def __init__(self, tol: float):
        self.tol = max(tol, 1e-16)
        self.begin: float | None = None
        self.bar = tqdm(total=100, bar_format="fit {percentage:3.0f}%|{bar:10}| {elapsed} {desc}")
        # Before the first iteration there is nothing to count, and with many samples it may take long.
        self.bar.set_description_str("kernels and start")

    def __call__(self, entry: dict[str, float]) -> None:
        """Move the bar to an entry of the history."""
        stationarity = max(entry["stationarity"], self.tol)
        if self.begin is None or entry["iteration"] == 0:
            self.begin = max(stationarity, 10 * self.tol)
        share = math.log(self.begin / stationarity) / math.log(self.begin / self.tol)
        # A narrow terminal cuts the end off: a number without its exponent would be another one.
        self.bar.set_description_str(
            f"iteration {entry['iteration']}, stationarity {entry['stationarity']:.1e}, J {entry['objective']:.6g}",
            refresh=False,
        )
        self.bar.update(round(100 * min(max(share, self.bar.n / 100), 1.0)) - self.bar.n)

    def close(self) -> None:
        """Show the last state and end the bar's line."""
        self.bar.refresh()
        self.bar.close()
