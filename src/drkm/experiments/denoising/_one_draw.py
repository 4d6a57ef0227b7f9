"""Verdicts on errors that were measured on one draw of the data."""

from __future__ import annotations

from drkm.experiments.section import Claim, Verdict

#: two errors closer than this, relative to the larger, are not told apart: another draw moves them as much
MARGIN = 0.05
RULE = f"One draw; differences below {MARGIN:.0%} are not told apart.".replace("%", " %")


def smaller(error: float, than: float) -> Verdict:
    """Judge "this error is smaller than that one"."""
    if abs(error - than) < MARGIN * max(error, than):
        return Verdict.UNDECIDED
    return Verdict.HELD if error < than else Verdict.FAILED


def missing(text: str, published: str = "") -> Claim:
    """Return a claim whose runs are not there."""
    return Claim(text, published, "not run", Verdict.UNDECIDED, "Runs are missing.")
