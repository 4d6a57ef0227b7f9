"""Rules by which claims are judged. docs/studies.md says which of them were fixed before results were seen.

Most rules are about means and the 95 % interval of their difference. Runs of the same training draw share images at
every N: those of a smaller N are among those of a larger one, and the unseen images are the same. So each draw counts
once: runs of one draw are averaged, two groups of runs are compared in pairs on their common draws, and the interval is
that of Student's t over these draws. A claim about one dataset cannot be judged without runs on it; a claim about all
datasets can fail on one, and holds only if all four were run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import Verdict
from drkm.experiments.study.rows import values_of
from drkm.experiments.study.scales import FOUR

#: coverage of an interval, or simultaneous coverage of several
LEVEL = 0.95
#: a score that differs less than this between values of γ counts as constant
STEADY = 0.05
#: a lead that is surely smaller than this does not count; scores are between 0 and 1
TIE = 0.01
#: numbers of cases that held, that failed, and of all cases → verdict
Rule = Callable[[int, int, int], Verdict]


@dataclass(frozen=True)
class Difference:
    """The difference of the means of two groups of scores, with its interval and the number of draws behind it."""

    estimate: float
    low: float
    high: float
    draws: int

    def __str__(self) -> str:
        return f"{self.estimate:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def difference(first: Sequence[Row], second: Sequence[Row], score: str, comparisons: int = 1) -> Difference | None:
    """Return how far the first runs are above the second, compared in pairs if they share at least two draws.

    Otherwise they are compared by Welch's t over draws, or not at all with fewer than two draws on one side. The
    interval of one of several `comparisons` is wide enough for simultaneous coverage (Bonferroni).
    """
    ours, theirs = by_draw(first, score), by_draw(second, score)
    shared = [draw for draw in ours if draw in theirs]
    if len(shared) > 1:
        return paired([ours[draw] - theirs[draw] for draw in shared], comparisons)
    return welch(list(ours.values()), list(theirs.values()), comparisons)


def by_draw(rows: Iterable[Row], score: str) -> dict[tuple[str, int], float]:
    """Return the mean score of the runs of each training draw."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if row.get(score) is not None:
            draw = row["draw"] if "draw" in row else row["seed"]
            found.setdefault((row["dataset"], draw), []).append(float(row[score]))
    return {draw: float(np.mean(values)) for draw, values in found.items()}


def paired(differences: Sequence[float], comparisons: int = 1) -> Difference:
    """Return the mean of differences with the interval of Student's t."""
    error = spread(differences) / len(differences) ** 0.5
    return _interval(float(np.mean(differences)), error, len(differences) - 1, len(differences), comparisons)


def welch(first: Sequence[float], second: Sequence[float], comparisons: int = 1) -> Difference | None:
    """Return mean(first) - mean(second) with the interval of Welch's t, or None if one has fewer than two values."""
    if len(first) < 2 or len(second) < 2:
        return None
    squares = [spread(group) ** 2 / len(group) for group in (first, second)]
    error = sum(squares) ** 0.5
    below = sum(s**2 / (len(group) - 1) for s, group in zip(squares, (first, second), strict=True))
    freedom = error**4 / below if below else 1.0
    draws = min(len(first), len(second))
    return _interval(float(np.mean(first) - np.mean(second)), error, freedom, draws, comparisons)


def _interval(estimate: float, error: float, freedom: float, draws: int, comparisons: int) -> Difference:
    width = _quantile(freedom, comparisons) * error if error else 0.0
    return Difference(estimate, estimate - width, estimate + width, draws)


@cache
def _quantile(freedom: float, comparisons: int = 1) -> float:
    # Imported late: it takes longer than everything else that the list of experiments needs.
    from scipy.stats import t

    return float(t.ppf(1 - (1 - LEVEL) / (2 * comparisons), freedom))


@cache
def to_halve(draws: int) -> int:
    """Return how many more draws would halve an interval over this many draws, if scores keep varying as much."""

    def width(n: int) -> float:
        return _quantile(n - 1) / n**0.5

    return next(more for more in count(1) if width(draws + more) <= width(draws) / 2)


def fewest_draws(*found: Difference | None) -> int:
    """Return the fewest draws behind any of these differences, 0 if there is none."""
    return min((one.draws for one in found if one), default=0)


def greater(found: Difference | None, by: float = 0.0, tie: float = TIE) -> Verdict:
    """Judge "the first is greater (by at least `by`)": by the side of `by` on which the whole interval lies.

    If the interval ends below `tie`, any lead is negligible and the claim fails.
    """
    if found is None:
        return Verdict.UNDECIDED
    if found.high < max(by, tie):
        return Verdict.FAILED
    return Verdict.HELD if found.low > by else Verdict.UNDECIDED


def alike(found: Difference | None, margin: float) -> Verdict:
    """Judge "the two are similar": whether the whole interval is inside or outside of ± margin."""
    if found is None:
        return Verdict.UNDECIDED
    if -margin < found.low and found.high < margin:
        return Verdict.HELD
    return Verdict.FAILED if found.low > margin or found.high < -margin else Verdict.UNDECIDED


def _rule(holds: Callable[[int, int, int], bool], fails: Callable[[int, int, int], bool] | None = None) -> Rule:
    """Return a rule from two conditions; by default it fails where it does not hold. Without cases it is undecided."""

    def judge(yes: int, no: int, of: int) -> Verdict:
        if of and holds(yes, no, of):
            return Verdict.HELD
        return Verdict.FAILED if of and (fails is None or fails(yes, no, of)) else Verdict.UNDECIDED

    return judge


#: so in most cases, some of which may be undecided; or where every case is decided; or not so in most cases
majority = _rule(lambda yes, no, of: yes > of / 2, lambda yes, no, of: no >= of / 2)
most = _rule(lambda yes, no, of: yes > of / 2)
not_most = _rule(lambda yes, no, of: yes <= of / 2)
#: neither side is ahead: the two counts differ by no more than a third of the cases
balanced = _rule(lambda yes, no, of: abs(yes - no) <= of / 3)
#: so in every case: fails if it is so in half of them or fewer, or if one case fails
everywhere = _rule(lambda yes, no, of: yes == of, lambda yes, no, of: yes <= of / 2)
everyone = _rule(lambda yes, no, of: yes == of, lambda yes, no, of: no > 0)


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Judge a claim about all of these cases."""
    found = list(verdicts)
    return everyone(found.count(Verdict.HELD), found.count(Verdict.FAILED), len(found))


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation (n - 1), nan for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Return mean ± standard deviation."""
    if not values:
        return "no runs"
    around = f" ± {spread(values):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{around}"


def widest(groups: Iterable[Sequence[Row]], score: str) -> Difference | None:
    """Return the difference between the groups of highest and lowest mean."""
    ordered = sorted((group for group in groups if values_of(group, score)), key=lambda g: np.mean(values_of(g, score)))
    return difference(ordered[-1], ordered[0], score) if len(ordered) > 1 else None


def all_four(rows: Iterable[Row]) -> bool:
    """Whether there are runs on all four datasets of the paper."""
    return set(FOUR) <= {row["dataset"] for row in rows}


def several(rows: Iterable[Row]) -> bool:
    """Whether there are runs on more than one dataset."""
    return len({row["dataset"] for row in rows}) > 1


def described(rows: Sequence[Row], score: str) -> str:
    """Return mean ± standard deviation of a score, its chance level unless already subtracted, and the run count."""
    values = values_of(rows, score)
    text = mean_and_spread(values)
    if not score.endswith("_above") and values:
        text += f", chance {np.mean(values_of(rows, f'{score}_chance')):.3f}"
    return f"{text} ({len(values)} runs)"


def decided(found: bool, known: bool = True) -> Verdict:
    """Return HELD or FAILED, or UNDECIDED if it is not known."""
    return (Verdict.HELD if found else Verdict.FAILED) if known else Verdict.UNDECIDED
