"""The models of the experiment on depth, their comparisons, and the rule that decides whether depth pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from drkm.experiments.experiment import Row
from drkm.experiments.section import Verdict
from drkm.experiments.study import claims, verdicts
from drkm.experiments.study.rows import chosen, values_of
from drkm.experiments.study.scales import DATASET_NAMES, FOUR, ONE_LAYER, SCORE_NAMES, TWO_LAYERS

#: deep layers that are centred, with a third of the weight of layer 1 and σ² of four times the scale of the codes
CENTRED_DEEP: dict[str, Any] = {"center": True, "deep_eta": 3.0, "deep_width": 4.0}
SHALLOW, CENTRED = "kernel PCA", "kernel PCA, centred"
DEFAULTS, GROWING, LINEAR, THREE = (
    "defaults (10, 5)",
    "centred (5, 10)",
    "linear, then RBF (5, 10)",
    "centred (5, 5, 10)",
)
ON_FILTERS, CENTRED_ON_FILTERS = "kernel PCA on filters", "kernel PCA on filters, centred"
DEEP_ON_FILTERS = "defaults (10, 5) on filters"
#: model → its layers and options
MODELS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    SHALLOW: (ONE_LAYER, {}),
    CENTRED: (ONE_LAYER, {"center": True}),
    DEFAULTS: (TWO_LAYERS, {}),
    GROWING: ((5, 10), CENTRED_DEEP),
    LINEAR: ((5, 10), {"center": True, "first": "linear"}),
    THREE: ((5, 5, 10), CENTRED_DEEP),
    ON_FILTERS: (ONE_LAYER, {"filters": True}),
    CENTRED_ON_FILTERS: (ONE_LAYER, {"filters": True, "center": True}),
    DEEP_ON_FILTERS: (TWO_LAYERS, {"filters": True}),
}


class Contest(NamedTuple):
    """A candidate and its rivals: it has to be ahead of the better one."""

    candidate: str
    rivals: tuple[str, ...]


PIXELS, FILTERS = (SHALLOW, CENTRED), (ON_FILTERS, CENTRED_ON_FILTERS)
#: several trained layers against one layer on the same inputs; fixed filters, with one and two layers, against none
OF_DEPTH = (
    *(Contest(name, PIXELS) for name in (DEFAULTS, GROWING, LINEAR, THREE)),
    Contest(DEEP_ON_FILTERS, FILTERS),
)
OF_FILTERS = tuple(Contest(name, PIXELS) for name in (ON_FILTERS, DEEP_ON_FILTERS))
CONTESTS = (*OF_DEPTH, *OF_FILTERS)
#: the scores that are judged, and the number of intervals with simultaneous coverage
JUDGED = ("irs_above", "mig", "sap", "accuracy")
COMPARISONS = len(CONTESTS) * len(FOUR) * len(JUDGED)
RULE = (
    "Pays: on some dataset ahead of the better kernel PCA in at least one score and behind in none. Ahead: the "
    f"interval of the difference, in pairs of draws, is above 0, where all {COMPARISONS} intervals of this experiment "
    "hold together at 95 % (Bonferroni). Behind: already its own 95 % interval is below 0."
)


class Outcome(NamedTuple):
    """How far a candidate is ahead of the better rival in one score on one dataset."""

    dataset: str
    score: str
    rival: str
    #: with a single interval, and with one that has simultaneous coverage
    own: verdicts.Difference
    joint: verdicts.Difference

    @property
    def verdict(self) -> Verdict:
        """Whether it is ahead; "ahead" takes stronger evidence than "behind"."""
        return Verdict.HELD if self.joint.low > 0 else Verdict.FAILED if self.own.high < 0 else Verdict.UNDECIDED

    def __str__(self) -> str:
        return f"{SCORE_NAMES[self.score]} on {DATASET_NAMES[self.dataset]} {self.joint}"


def outcomes(rows: Sequence[Row], contest: Contest) -> Iterator[Outcome]:
    """Yield all possible comparisons; the better rival has the higher mean on the judged draws."""
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        here = chosen(rows, dataset=dataset)
        ours = chosen(here, model=contest.candidate)
        rivals = {name: chosen(here, model=name) for name in contest.rivals}
        for score in JUDGED:
            means = {name: np.mean(values) for name, group in rivals.items() if (values := values_of(group, score))}
            if len(means) < len(rivals):
                continue
            better = max(means, key=lambda name: means[name])
            own, joint = (verdicts.difference(ours, rivals[better], score, number) for number in (1, COMPARISONS))
            if own is not None and joint is not None:
                yield Outcome(dataset, score, better, own, joint)


def paying(found: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes in which a candidate is ahead, on datasets where it is behind in no score."""
    behind = {one.dataset for one in found if one.verdict is Verdict.FAILED}
    return [one for one in found if one.verdict is Verdict.HELD and one.dataset not in behind]


def pays(rows: list[Row], text: str, *contests: Contest) -> claims.Claim:
    """Return the claim that at least one of the candidates pays."""
    found = {contest: list(outcomes(rows, contest)) for contest in contests}
    every = [one for each in found.values() for one in each]
    ahead, behind = (sum(one.verdict is verdict for one in every) for verdict in (Verdict.HELD, Verdict.FAILED))
    told = [
        f"{contest.candidate}: {one}" if len(contests) > 1 else f"{one}"
        for contest, each in found.items()
        for one in paying(each)
    ]
    complete = len(every) == len(contests) * len(FOUR) * len(JUDGED)
    measured = f"ahead in {ahead}, behind in {behind} of {len(every)} combinations of dataset and score"
    measured += f"; pays in {'; '.join(told)}" if told else "; pays nowhere" if complete else ""
    verdict = verdicts.decided(bool(told), bool(told) or complete)
    draws = verdicts.fewest_draws(*(one.own for one in every))
    return claims.claim(text, rows, claims.Finding(measured, verdict, RULE, draws))
