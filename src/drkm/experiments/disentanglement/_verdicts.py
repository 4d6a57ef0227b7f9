"""Rules by which claims are judged. They were fixed before the runs at medium and paper scale were looked at.

Most rules are about means over runs and the 95 % interval of their difference (Welch's t), which is wide where there
are few seeds. Runs that share a training draw count as if they were independent, so that intervals over several γ or β
are somewhat too narrow. A claim about one dataset cannot be judged without it; a claim about all datasets can fail on
one, and holds only where all four were run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from drkm.experiments.disentanglement._sweep import DATASET_NAMES, FOUR, METRIC_NAMES, Row, chosen, values_of
from drkm.experiments.section import Claim, Verdict

#: coverage of an interval
LEVEL = 0.95
RULE = "difference of means with its 95 % interval"
SCORE_NAMES = {
    **METRIC_NAMES,
    **{f"{name}_above": f"{title} above chance" for name, title in METRIC_NAMES.items()},
}


@dataclass(frozen=True)
class Difference:
    """How far the mean of one group of scores is above that of another, with its interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def difference(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Return mean(first) - mean(second) with its interval, or None where a group has fewer than two values."""
    if len(first) < 2 or len(second) < 2:
        return None
    estimate = float(np.mean(first) - np.mean(second))
    squares = [float(np.var(group, ddof=1)) / len(group) for group in (first, second)]
    error = sum(squares) ** 0.5
    if error == 0:
        return Difference(estimate, estimate, estimate)
    freedom = error**4 / sum(s**2 / (len(group) - 1) for s, group in zip(squares, (first, second), strict=True))
    width = float(t.ppf((1 + LEVEL) / 2, freedom)) * error
    return Difference(estimate, estimate - width, estimate + width)


def greater(found: Difference | None, by: float = 0.0) -> Verdict:
    """Judge "the first is greater (by so much)": by the side of `by` on which the whole interval lies."""
    if found is None:
        return Verdict.UNDECIDED
    return Verdict.HELD if found.low > by else Verdict.FAILED if found.high < by else Verdict.UNDECIDED


def alike(found: Difference | None, margin: float) -> Verdict:
    """Judge "the two are similar": whether the whole interval is within ± margin, or outside of it."""
    if found is None:
        return Verdict.UNDECIDED
    if -margin < found.low and found.high < margin:
        return Verdict.HELD
    return Verdict.FAILED if found.low > margin or found.high < -margin else Verdict.UNDECIDED


def all_of(verdicts: Iterable[Verdict], *, complete: bool = True) -> Verdict:
    """Judge a claim about all cases: one failure is enough; it holds where all hold and none is missing."""
    found = list(verdicts)
    if Verdict.FAILED in found:
        return Verdict.FAILED
    return Verdict.HELD if found and complete and set(found) == {Verdict.HELD} else Verdict.UNDECIDED


def majority(yes: int, no: int, of: int) -> Verdict:
    """Judge a claim about most cases, some of which are undecided: more than half on one side."""
    if of and yes > of / 2:
        return Verdict.HELD
    return Verdict.FAILED if of and no > of / 2 else Verdict.UNDECIDED


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation (n - 1), nan for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Return mean ± standard deviation."""
    if not values:
        return "no runs"
    around = f" ± {spread(values):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{around}"


def all_four(rows: Iterable[Row]) -> bool:
    """Whether runs of all four datasets of the paper are at hand."""
    return set(FOUR) <= {row["dataset"] for row in rows}


def not_run(text: str, published: str, dataset: str) -> Claim:
    """Return a claim about a dataset of which there are no runs."""
    why = f"No runs on {DATASET_NAMES[dataset]} at this scale."
    return Claim(text, published, "not run", Verdict.UNDECIDED, why)


def compare(
    text: str,
    published: str,
    first: tuple[str, Sequence[Row]],
    second: tuple[str, Sequence[Row]],
    score: str,
    judge: Callable[[Difference | None], Verdict],
    rule: str,
) -> Claim:
    """Return a claim about two named groups of runs in one score, judged by a rule; IRS stands beside its chance."""
    found = difference(values_of(first[1], score), values_of(second[1], score))
    parts = [f"{name} {described(rows, score)}" for name, rows in (first, second)]
    if found is None:
        return Claim(text, published, "; ".join(parts), Verdict.UNDECIDED, "Fewer than two runs on one side.")
    why = f"{RULE.capitalize()} in {SCORE_NAMES[score]}: {found}; {rule}"
    return Claim(text, published, "; ".join(parts), judge(found), why)


def on_most_datasets(text: str, first: Sequence[Row], second: Sequence[Row], score: str) -> Claim:
    """Return a question of our own: is the first group of runs ahead of the second on most datasets?"""
    judged, parts = [], []
    for dataset in dict.fromkeys(row["dataset"] for row in first):
        found = difference(*(values_of(chosen(rows, dataset=dataset), score) for rows in (first, second)))
        if found is not None:
            judged.append(greater(found))
            parts.append(f"{DATASET_NAMES[dataset]} {found}")
    verdict = majority(judged.count(Verdict.HELD), judged.count(Verdict.FAILED), len(judged))
    why = f"{RULE.capitalize()}; holds or fails by more than half of the datasets that were run."
    return Claim(text, "", "; ".join(parts) or "no runs", verdict, why)


def described(rows: Sequence[Row], score: str) -> str:
    """Return mean ± standard deviation of a score, its chance level where that is not taken off, and the runs."""
    values = values_of(rows, score)
    text = mean_and_spread(values)
    if not score.endswith("_above") and values:
        text += f", chance {np.mean(values_of(rows, f'{score}_chance')):.3f}"
    return f"{text} ({len(values)} runs)"


def with_and_without_chance(make: Callable[[str, str], Claim]) -> list[Claim]:
    """Return a claim in IRS, as published, and the same above chance: `make(score, what to add to its text)`."""
    return [make("irs", ""), make("irs_above", ", judged above chance in IRS")]
