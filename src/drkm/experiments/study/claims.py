"""Claims as data: a sentence, what the paper says, and the rule by which the rows of a study decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict
from drkm.experiments.study.rows import chosen, grouped, values_of
from drkm.experiments.study.scales import DATASET_NAMES, FAMILY_NAMES, SCORE_NAMES, StudySizes
from drkm.experiments.study.verdicts import (
    TIE,
    Difference,
    decided,
    described,
    difference,
    greater,
    majority,
    spread,
    to_halve,
)
from drkm.wording import counted

MEANS = "Difference of means, draw by draw, with its 95 % interval"
#: stand, where rows are chosen, for the family of a statement and for the smallest and largest N that was run
OWN, FEWEST, MOST = "own family", "fewest images", "most images"


class Finding(NamedTuple):
    """What decides a claim, as `drkm.experiments.section.Claim` has it."""

    measured: str
    verdict: Verdict
    why: str
    #: training draws behind the intervals that decided, the fewest of them; 0 where none did
    draws: int = 0


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A sentence that rows can bear out."""

    #: may hold {family}, {score}, {metric} (the score without "above chance"), {added}, {fewest} and {most} (images)
    text: str
    #: (rows, statement, sizes) → Finding, or None where there is nothing to judge
    rule: Callable[[list[Row], Statement, StudySizes], Finding | None]
    #: the paper's number or wording; "" for a question of our own
    published: str = ""
    #: the one that it is about; "" for all
    dataset: str = ""
    #: what it is about and what is added to its text, see `for_families` and `with_and_without_chance`
    family: str = ""
    score: str = "irs"
    added: str = ""
    #: (rows, family) → the rows that are judged
    among: Callable[[list[Row], str], list[Row]] = lambda rows, family: rows

    def __call__(self, rows: list[Row], sizes: StudySizes) -> Claim:
        """Return the claim with its verdict."""
        rows = self.among(rows, self.family)
        if self.dataset:
            rows = chosen(rows, dataset=self.dataset)
        found = self.rule(rows, self, sizes)
        if found is None:
            why = f"No runs on {DATASET_NAMES[self.dataset]} at this scale."
            found = Finding("not run", Verdict.UNDECIDED, why)
        measured, verdict, why, draws = found
        return Claim(self.said(self.text, rows), self.published, measured, verdict, why + _basis(rows, draws))

    def said(self, text: str, rows: list[Row]) -> str:
        """Return a text about the family, the score and the rows of this statement."""
        return text.format(
            family=FAMILY_NAMES.get(self.family, self.family),
            score=SCORE_NAMES.get(self.score, self.score),
            metric=SCORE_NAMES.get(self.score.removesuffix("_above"), self.score),
            added=self.added,
            fewest=min((row["n"] for row in rows if "n" in row), default="few"),
            most=max((row["n"] for row in rows if "n" in row), default="many"),
        )

    def rows(self, rows: Sequence[Row], **where: Any) -> list[Row]:
        """Return those of the rows that are meant."""
        meant: dict[Any, Any] = {OWN: self.family}
        if FEWEST in where.values() or MOST in where.values():
            run = [row["n"] for row in rows]
            meant |= {FEWEST: min(run, default=0), MOST: max(run, default=0)}
        return chosen(rows, **{key: meant.get(value, value) for key, value in where.items()})


def _basis(rows: Sequence[Row], draws: int) -> str:
    """Return how many draws or seeds a verdict is based on, and how many more would halve its interval."""
    if draws > 1:
        return f" Based on {draws} training draws; {to_halve(draws)} more would halve the interval."
    seeds = len({row["seed"] for row in rows if "seed" in row})
    return f" Based on {counted(seeds, 'seed')}." if seeds else ""


def own_rows(rows: list[Row], family: str) -> list[Row]:
    """Return the rows of a family."""
    return chosen(rows, family=family)


def for_families(
    families: Iterable[str], among: Callable[[list[Row], str], list[Row]], *statements: Statement
) -> list[Statement]:
    """Return all statements about one family after the other."""
    return [replace(said, family=family, among=among) for family in families for said in statements]


def for_scores(scores: Iterable[str], *statements: Statement) -> list[Statement]:
    """Return all statements about one score after the other; nothing is published about scores above chance."""
    return [
        replace(said, score=score, published="" if score.endswith("_above") else said.published)
        for score in scores
        for said in statements
    ]


def with_and_without_chance(*statements: Statement) -> list[Statement]:
    """Return statements about IRS, each as published and the same above chance."""
    above: dict[str, Any] = {"score": "irs_above", "published": "", "added": ", judged above chance in IRS"}
    return [one for said in statements for one in (said, replace(said, **above))]


@dataclass(frozen=True)
class Side:
    """A named group of rows that is compared with another; its name may hold {family}."""

    name: str
    where: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A rule about the means of two groups of runs; IRS stands beside its chance level."""

    first: Side
    second: Side
    ends: str = "holds where it is above 0."
    judge: Callable[[Difference | None], Verdict] = greater

    def __call__(self, rows: list[Row], said: Statement, sizes: StudySizes) -> Finding:
        """Return what the two groups show."""
        first, second = (said.rows(rows, **side.where) for side in (self.first, self.second))
        named = ((self.first.name, first), (self.second.name, second))
        measured = "; ".join(f"{said.said(name, rows)} {described(group, said.score)}" for name, group in named)
        found = difference(first, second, said.score)
        if found is None:
            return Finding(measured, Verdict.UNDECIDED, "Fewer than two runs on one side.")
        why = f"{MEANS} in {SCORE_NAMES[said.score]}: {found}; {self.ends}"
        return Finding(measured, self.judge(found), why, found.draws)


class Case(NamedTuple):
    """One of the cases that a claim is about, and what is to be said about it."""

    verdict: Verdict
    note: str = ""
    #: behind its interval
    draws: int = 0


@dataclass(frozen=True, kw_only=True)
class Cases:
    """A rule about many cases, each judged on its own, of which enough must agree."""

    #: (rows of a case, score, statement) → Case, or None where it cannot be judged
    judge: Callable[[list[Row], str, Statement], Case | None]
    #: (held, failed, all) → Verdict, see `drkm.experiments.study.verdicts`
    enough: Callable[[int, int, int], Verdict]
    why: str
    #: what the rows of a case have in common, the scores (by default that of the statement), and which rows are judged
    by: Sequence[str] = ("dataset",)
    scores: Sequence[str] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    #: may hold {place}, {score} and {found}, the note of a case
    note: str = "{place} {found}"
    #: may hold {yes}, {no}, {unsure} and {total}, counts of cases, and {notes}
    measured: str = "{notes}"
    #: before notes, between them, and in place of them where there are none
    opening: str = ""
    separator: str = "; "
    nothing: str = "no runs"
    #: whether the rows are enough to decide at all, and enough to hold
    needs: Callable[[list[Row]], bool] = lambda rows: True
    to_hold: Callable[[list[Row]], bool] = lambda rows: True

    def __call__(self, rows: list[Row], said: Statement, sizes: StudySizes) -> Finding | None:
        """Return what the cases show together."""
        cases = self._cases(rows, said)
        if said.dataset and not cases:
            return None
        verdicts = [case.verdict for case in cases]
        yes, no = verdicts.count(Verdict.HELD), verdicts.count(Verdict.FAILED)
        counts = {"yes": yes, "no": no, "unsure": len(cases) - yes - no, "total": len(cases)}
        notes = [case.note for case in cases if case.note]
        listed = self.opening + self.separator.join(notes) if notes else self.nothing
        verdict = self.enough(yes, no, len(cases))
        if not self.needs(rows) or (verdict is Verdict.HELD and not self.to_hold(rows)):
            verdict = Verdict.UNDECIDED
        fewest = min((case.draws for case in cases if case.draws), default=0)
        return Finding(self.measured.format(**counts, notes=listed), verdict, self.why, fewest)

    def _cases(self, rows: list[Row], said: Statement) -> list[Case]:
        cases = []
        for key, here in grouped(said.rows(rows, **self.where), *self.by).items():
            place = ", ".join(_PLACES.get(name, "{}".format)(value) for name, value in zip(self.by, key, strict=True))
            for score in self.scores or (said.score,):
                case = self.judge(here, score, said)
                if case is not None:
                    named = {"place": place, "score": SCORE_NAMES.get(score, score), "found": case.note}
                    cases.append(case._replace(note=self.note.format(**named) if case.note else ""))
        return cases


_PLACES: dict[str, Callable[[Any], str]] = {"dataset": DATASET_NAMES.__getitem__, "n": "N = {}".format}


def ahead(first: Sequence[Row], second: Sequence[Row], score: str, tie: float = TIE) -> Case | None:
    """Judge whether the first runs have the greater mean; with `tie=0` to fail is to have the smaller one."""
    found = difference(first, second, score)
    return None if found is None else Case(greater(found, tie=tie), f"{found}", found.draws)


#: counts who is ahead and who is behind, by any difference
ahead_or_behind = partial(ahead, tie=0.0)


def steadier(
    first: Sequence[Row], second: Sequence[Row], score: str, holds: float = 1.0, fails: float = 1.0
) -> Case | None:
    """Judge whether the first runs vary less: below `holds` times as much, and not from `fails` times on."""
    own, other = (spread(values_of(group, score)) for group in (first, second))
    if math.isnan(own + other):
        return None
    below = own < holds * other
    return Case(decided(below, below or own >= fails * other), f"{own:.3f} against {other:.3f}")


def two(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    judge: Callable[[Sequence[Row], Sequence[Row], str], Case | None] = ahead,
) -> Callable[[list[Row], str, Statement], Case | None]:
    """Return the judgement of cases that compares two groups of their rows."""
    return lambda rows, score, said: judge(said.rows(rows, **first), said.rows(rows, **second), score)


def on_most_datasets(first: Mapping[str, Any], second: Mapping[str, Any]) -> Cases:
    """Return the rule of our own questions: is the first group of runs ahead of the second on most datasets?"""
    why = f"{MEANS}; holds where it is above 0 on more than half of the datasets that were run, fails where it ends "
    why += f"below {TIE} on half of them."
    return Cases(judge=two(first, second), enough=majority, why=why)


@dataclass(frozen=True, kw_only=True)
class Unmoved:
    """A rule about scores of deterministic fits: none of them varies over seeds."""

    by: Sequence[str]
    where: Mapping[str, Any]
    scores: Sequence[str]
    why: str
    measured: str = "largest standard deviation {:.3g}"

    def __call__(self, rows: list[Row], said: Statement, sizes: StudySizes) -> Finding:
        """Return the largest standard deviation of any score in any group."""
        groups = grouped(said.rows(rows, **self.where), *self.by).values()
        found = [spread(values_of(group, score)) for group in groups for score in self.scores]
        known = [value for value in found if value == value]
        measured = self.measured.format(max(known)) if known else "no runs"
        return Finding(measured, decided(not any(known), bool(known) and known == found), self.why)


def named_groups(groups: Mapping[str, Sequence[Row]], score: str) -> str:
    """Return groups of runs under their names, each with its score."""
    return "; ".join(f"{name}: {described(group, score)}" for name, group in groups.items())
