"""Claims as data: a sentence, what the paper says, and the rule by which the rows of a study decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict
from drkm.experiments.study.rows import by_value, chosen, values_of
from drkm.experiments.study.scales import DATASET_NAMES, FAMILY_NAMES, SCORE_NAMES, StudySizes
from drkm.experiments.study.verdicts import Difference, described, difference, greater, majority

MEANS = "Difference of means with its 95 % interval"
#: stands for the family of a statement where rows are chosen
OWN = "own family"

Where = Mapping[str, Any] | Callable[[Row], bool]


class Finding(NamedTuple):
    """What decides a claim, as `drkm.experiments.section.Claim` has it."""

    measured: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A sentence that rows can bear out."""

    #: may hold {family}, {score}, {metric} (the score without "above chance") and {added}
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

    def __call__(self, rows: list[Row], sizes: StudySizes) -> list[Claim]:
        """Return the claim with its verdict."""
        rows = self.among(rows, self.family)
        if self.dataset:
            rows = chosen(rows, dataset=self.dataset)
        found = self.rule(rows, self, sizes)
        if found is None:
            why = f"No runs on {DATASET_NAMES[self.dataset]} at this scale."
            found = Finding("not run", Verdict.UNDECIDED, why)
        return [Claim(self.said(self.text), self.published, *found)]

    def said(self, text: str) -> str:
        """Return a text about the family and the score of this statement."""
        return text.format(
            family=FAMILY_NAMES.get(self.family, self.family),
            score=SCORE_NAMES.get(self.score, self.score),
            metric=SCORE_NAMES.get(self.score.removesuffix("_above"), self.score),
            added=self.added,
        )


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


def with_and_without_chance(said: Statement) -> list[Statement]:
    """Return a statement about IRS, as published, and the same above chance."""
    return [said, replace(said, score="irs_above", published="", added=", judged above chance in IRS")]


@dataclass(frozen=True)
class Side:
    """A named group of rows that is compared with another; its name may hold {family}."""

    name: str
    where: Where

    def of(self, rows: Iterable[Row], said: Statement) -> list[Row]:
        """Return its rows."""
        if callable(self.where):
            return list(filter(self.where, rows))
        return chosen(rows, **{key: said.family if value == OWN else value for key, value in self.where.items()})


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A rule about the means of two groups of runs; IRS stands beside its chance level."""

    first: Side
    second: Side
    ends: str = "holds where it is above 0."
    judge: Callable[[Difference | None], Verdict] = greater

    def __call__(self, rows: list[Row], said: Statement, sizes: StudySizes) -> Finding:
        """Return what the two groups show."""
        groups = [side.of(rows, said) for side in (self.first, self.second)]
        named = zip((self.first, self.second), groups, strict=True)
        measured = "; ".join(f"{said.said(side.name)} {described(group, said.score)}" for side, group in named)
        found = difference(*(values_of(group, said.score) for group in groups))
        if found is None:
            return Finding(measured, Verdict.UNDECIDED, "Fewer than two runs on one side.")
        return Finding(measured, self.judge(found), f"{MEANS} in {SCORE_NAMES[said.score]}: {found}; {self.ends}")


class Case(NamedTuple):
    """One of the cases that a claim is about, and what is to be said about it."""

    verdict: Verdict
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Cases:
    """A rule about many cases, each judged on its own, of which enough must agree."""

    #: (rows, statement) → cases
    cases: Callable[[list[Row], Statement], Iterable[Case]]
    #: (held, failed, all) → Verdict, see `drkm.experiments.study.verdicts`
    enough: Callable[[int, int, int], Verdict]
    why: str
    #: may hold {yes}, {no}, {unsure} and {total}, counts of cases, and {notes}
    measured: str = "{notes}"
    #: before notes, between them, and in place of them where there are none
    opening: str = ""
    separator: str = "; "
    nothing: str = "no runs"
    #: whether a claim without any case counts as not run
    or_none: bool = False
    #: whether the rows are enough to decide at all, and enough to hold
    needs: Callable[[list[Row]], bool] = lambda rows: True
    to_hold: Callable[[list[Row]], bool] = lambda rows: True

    def __call__(self, rows: list[Row], said: Statement, sizes: StudySizes) -> Finding | None:
        """Return what the cases show together."""
        cases = list(self.cases(rows, said))
        if self.or_none and not cases:
            return None
        verdicts = [case.verdict for case in cases]
        yes, no = verdicts.count(Verdict.HELD), verdicts.count(Verdict.FAILED)
        counts = {"yes": yes, "no": no, "unsure": len(cases) - yes - no, "total": len(cases)}
        notes = [case.note for case in cases if case.note]
        listed = self.opening + self.separator.join(notes) if notes else self.nothing
        verdict = self.enough(yes, no, len(cases))
        if not self.needs(rows) or (verdict is Verdict.HELD and not self.to_hold(rows)):
            verdict = Verdict.UNDECIDED
        return Finding(self.measured.format(**counts, notes=listed), verdict, self.why)


def on_most_datasets(first: Where, second: Where) -> Cases:
    """Return the rule of our own questions: is the first group of runs ahead of the second on most datasets?"""

    def cases(rows: list[Row], said: Statement) -> Iterable[Case]:
        groups = [Side("", where).of(rows, said) for where in (first, second)]
        for dataset in by_value(groups[0], "dataset"):
            found = difference(*(values_of(chosen(group, dataset=dataset), said.score) for group in groups))
            if found is not None:
                yield Case(greater(found), f"{DATASET_NAMES[dataset]} {found}")

    why = f"{MEANS}; holds or fails by more than half of the datasets that were run."
    return Cases(cases=cases, enough=majority, why=why)


def decided(found: bool) -> Verdict:
    """Return the verdict on a case that is so or is not."""
    return Verdict.HELD if found else Verdict.FAILED


def smaller_spreads(pairs: Mapping[str, tuple[float, float]]) -> Iterator[Case]:
    """Yield whether the first standard deviation of a named pair is the smaller one."""
    for name, (own, other) in pairs.items():
        yield Case(decided(own < other), f"{name}: {own:.3f} against {other:.3f}")


def judged_or_not(known: bool, found: bool) -> Verdict:
    """Return the verdict on what is so or is not, where it can be known."""
    return decided(found) if known else Verdict.UNDECIDED


def named_groups(groups: Mapping[str, Sequence[Row]], score: str) -> str:
    """Return groups of runs under their names, each with its score."""
    return "; ".join(f"{name}: {described(group, score)}" for name, group in groups.items())
