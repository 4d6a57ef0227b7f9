"""Claims about the rows of a study: what was measured, the verdict, and how many draws it is based on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict
from drkm.experiments.study import verdicts
from drkm.experiments.study.rows import chosen, grouped, values_of
from drkm.experiments.study.scales import DATASET_NAMES, SCORE_NAMES
from drkm.wording import counted

MEANS = "Difference of means, draw by draw, with its 95 % interval"


class Finding(NamedTuple):
    """What decides a claim, with the fields of `drkm.experiments.section.Claim`."""

    measured: str
    verdict: Verdict
    why: str
    #: fewest training draws behind any of the deciding intervals; 0 if there is none
    draws: int = 0


def claim(text: str, rows: Sequence[Row], found: Finding, published: str = "") -> Claim:
    """Return a claim about rows; `published` is empty for a question of our own."""
    return Claim(text, published, found.measured, found.verdict, found.why + _basis(rows, found.draws))


def _basis(rows: Sequence[Row], draws: int) -> str:
    """Return the number of draws or seeds behind a verdict, and how many more would halve its interval."""
    if draws > 1:
        return f" Based on {draws} training draws; {verdicts.to_halve(draws)} more would halve the interval."
    seeds = len({row["seed"] for row in rows if "seed" in row})
    return f" Based on {counted(seeds, 'seed')}." if seeds else ""


def about_irs(text: str, rows: Sequence[Row], judge: Callable[[str], Finding], published: str) -> Iterator[Claim]:
    """Yield a claim about IRS as published, and the same claim judged above chance; `judge` takes the score."""
    yield claim(f"{text}.", rows, judge("irs"), published)
    yield claim(f"{text}, judged above chance in IRS.", rows, judge("irs_above"))


def not_run(dataset: str) -> Finding:
    """Return the finding if runs on a dataset are missing."""
    return Finding("not run", Verdict.UNDECIDED, f"No runs on {DATASET_NAMES[dataset]} at this scale.")


def compared(
    first: tuple[str, Sequence[Row]],
    second: tuple[str, Sequence[Row]],
    score: str = "irs",
    *,
    judge: Callable[[verdicts.Difference | None], Verdict] = verdicts.greater,
    ends: str = "holds where it is above 0.",
) -> Finding:
    """Judge the means of two named groups of runs; IRS is given with its chance level."""
    measured = "; ".join(f"{name} {verdicts.described(group, score)}" for name, group in (first, second))
    found = verdicts.difference(first[1], second[1], score)
    if found is None:
        return Finding(measured, Verdict.UNDECIDED, "Fewer than two runs on one side.")
    return Finding(measured, judge(found), f"{MEANS} in {SCORE_NAMES[score]}: {found}; {ends}", found.draws)


class Case(NamedTuple):
    """One of the cases of a claim, with a note on it."""

    verdict: Verdict
    note: str = ""
    #: training draws behind its interval
    draws: int = 0


_PLACES: dict[str, Callable[[Any], str]] = {"dataset": DATASET_NAMES.__getitem__, "n": "N = {}".format}


def cases(
    rows: Iterable[Row],
    judge: Callable[[list[Row], str], Case | None],
    scores: Iterable[str],
    by: Sequence[str] = ("dataset",),
    note: str = "{place} {found}",
) -> list[Case]:
    """Judge each group of rows with the same values of some parameters, score by score; None: it cannot be judged."""
    found = []
    for key, here in grouped(rows, *by).items():
        place = ", ".join(_PLACES.get(name, "{}".format)(value) for name, value in zip(by, key, strict=True))
        for score in scores:
            case = judge(here, score)
            if case is not None:
                named = {"place": place, "score": SCORE_NAMES.get(score, score), "found": case.note}
                found.append(case._replace(note=note.format(**named) if case.note else ""))
    return found


def enough(
    cases: Sequence[Case],
    rule: verdicts.Rule,
    why: str,
    *,
    measured: str = "{notes}",
    separator: str = "; ",
    nothing: str = "no runs",
    known: bool = True,
    can_hold: bool = True,
) -> Finding:
    """Judge by the numbers of cases that held and failed, with a rule of `drkm.experiments.study.verdicts`.

    The text of the measurement may contain {yes}, {no}, {unsure} and {total}, counts of cases, and {notes}, replaced by
    `nothing` if there are none. Without `known` the claim is undecided, without `can_hold` it cannot hold.
    """
    each = [case.verdict for case in cases]
    yes, no = each.count(Verdict.HELD), each.count(Verdict.FAILED)
    notes = separator.join(case.note for case in cases if case.note) or nothing
    told = measured.format(yes=yes, no=no, unsure=len(cases) - yes - no, total=len(cases), notes=notes)
    verdict = rule(yes, no, len(cases))
    if not known or (verdict is Verdict.HELD and not can_hold):
        verdict = Verdict.UNDECIDED
    return Finding(told, verdict, why, min((case.draws for case in cases if case.draws), default=0))


def ahead(first: Sequence[Row], second: Sequence[Row], score: str, tie: float = verdicts.TIE) -> Case | None:
    """Judge whether the first runs have the greater mean; with `tie=0` it fails only if theirs is smaller."""
    found = verdicts.difference(first, second, score)
    return None if found is None else Case(verdicts.greater(found, tie=tie), f"{found}", found.draws)


def steadier(
    first: Sequence[Row], second: Sequence[Row], score: str, holds: float = 1.0, fails: float = 1.0
) -> Case | None:
    """Judge the ratio of the standard deviations of the runs: the claim holds below `holds` and fails from `fails`."""
    own, other = (verdicts.spread(values_of(group, score)) for group in (first, second))
    if math.isnan(own + other):
        return None
    below = own < holds * other
    return Case(verdicts.decided(below, below or own >= fails * other), f"{own:.3f} against {other:.3f}")


def between(
    first: Mapping[str, Any], second: Mapping[str, Any], judge: Callable[..., Case | None] = ahead, **how: float
) -> Callable[[list[Row], str], Case | None]:
    """Return a function that judges a case by comparing its rows with the values `first` to those with `second`."""
    return lambda rows, score: judge(chosen(rows, **first), chosen(rows, **second), score, **how)


def on_most_datasets(rows: Iterable[Row], first: Mapping[str, Any], second: Mapping[str, Any], score: str) -> Finding:
    """Judge whether the rows with the values `first` are ahead of those with `second` on most datasets."""
    found = cases(rows, between(first, second), [score])
    why = f"{MEANS}; holds where it is above 0 on more than half of the datasets that were run, fails where it ends "
    return enough(found, verdicts.majority, why + f"below {verdicts.TIE} on half of them.")


def unmoved(
    groups: Iterable[Sequence[Row]],
    scores: Sequence[str],
    why: str,
    measured: str = "largest standard deviation {:.3g}",
) -> Finding:
    """Judge whether fits are deterministic: within a group of runs with different seeds, no score varies."""
    found = [verdicts.spread(values_of(group, score)) for group in groups for score in scores]
    known = [value for value in found if value == value]
    told = measured.format(max(known)) if known else "no runs"
    return Finding(told, verdicts.decided(not any(known), bool(known) and known == found), why)


def named_groups(groups: Mapping[str, Sequence[Row]], score: str) -> str:
    """Return the names of groups of runs with their scores."""
    return "; ".join(f"{name}: {verdicts.described(group, score)}" for name, group in groups.items())
