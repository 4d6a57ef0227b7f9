"""The progress of the runs of experiments, and the estimated time of the rest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from statistics import fmean

from drkm.experiments import registry
from drkm.experiments.reproduce import names_of
from drkm.experiments.request import Request
from drkm.runs.configuration import Configuration
from drkm.runs.store import Store


@dataclass(frozen=True)
class Progress:
    """The progress of the runs of one or several experiments."""

    name: str
    runs: int
    done: int
    failed: int
    #: estimated computing time of missing runs, from finished runs of the same task and family
    seconds_left: float
    #: missing runs without such a finished run, which are not in `seconds_left`
    unlike: int

    @property
    def missing(self) -> int:
        """Runs that are neither done nor failed."""
        return self.runs - self.done - self.failed


def progress(store: str | os.PathLike[str], request: Request) -> list[Progress]:
    """Return the progress of each experiment, and last that of all together, where shared runs count once."""
    groups = {name: list(dict.fromkeys(runs)) for name, runs in request.runs.items()}
    every = list(dict.fromkeys(run for runs in groups.values() for run in runs))
    with Store(store, registry.TASKS, readonly=True) as opened:
        results, unfinished = opened.results(every), set(opened.unfinished(every))
    usual: dict[frozenset[str], list[float]] = {}
    for run in every:
        if run in results:
            usual.setdefault(frozenset(names_of(run)), []).append(results.seconds(run))

    def told(name: str, runs: list[Configuration]) -> Progress:
        kinds = [frozenset(names_of(run)) for run in runs if run in unfinished]
        done = sum(run in results for run in runs)
        left = sum(fmean(usual[kind]) for kind in kinds if kind in usual)
        return Progress(
            name, len(runs), done, len(runs) - done - len(kinds), left, sum(kind not in usual for kind in kinds)
        )

    return [*(told(name, runs) for name, runs in groups.items()), told("all", every)]
