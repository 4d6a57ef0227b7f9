"""Claims about errors on one draw: the rules by which figures, digits and Table 1 are judged."""

from __future__ import annotations

from collections.abc import Sequence

from drkm.experiments.section import Claim, Verdict

#: errors whose relative difference is smaller count as equal: another draw changes them by as much
MARGIN = 0.05
RULE = f"One draw; differences below {MARGIN:.0%} are not told apart.".replace("%", " %")


def smaller_error(text: str, errors: tuple[float, float, str] | None, why: str, published: str = "") -> Claim:
    """Return the claim that the first of two errors on one draw is smaller; the third entry is the measured text."""
    if errors is None:
        return missing(text, published)
    first, second, measured = errors
    return Claim(text, published, measured, smaller(first, second), f"{why} {RULE}")


def smaller(error: float, than: float) -> Verdict:
    """Judge "this error is smaller than that one"."""
    if abs(error - than) < MARGIN * max(error, than):
        return Verdict.UNDECIDED
    return Verdict.HELD if error < than else Verdict.FAILED


def counted(
    text: str, holds: Sequence[bool], why: str, published: str = "", *, unit: str = "cells", enough: int = 0
) -> Claim:
    """Judge a claim by the number of cases in which it holds: all, or enough; without cases it is undecided."""
    if not holds:
        return missing(text, published)
    verdict = Verdict.HELD if sum(holds) >= (enough or len(holds)) else Verdict.FAILED
    return Claim(text, published, f"{sum(holds)} of {len(holds)} {unit}", verdict, why)


def missing(text: str, published: str = "") -> Claim:
    """Return a claim whose runs are missing."""
    return Claim(text, published, "not run", Verdict.UNDECIDED, "Runs are missing.")
