"""A disentanglement experiment as data: groups of runs, tables, charts and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drkm.datasets import DatasetError
from drkm.experiments.data import dataset_checksum
from drkm.experiments.experiment import MEASURED, Experiment, Row
from drkm.experiments.settings import Kind, Seeds
from drkm.experiments.study.groups import Group
from drkm.experiments.study.parameters import PARAMETERS
from drkm.experiments.study.scales import METRIC_NAMES, StudySizes, sizes_of
from drkm.runs.configuration import Configuration, Results
from drkm.runs.tasks import Task
from drkm.validation import parts
from drkm.validation.parts import Part

#: ranges of a score, up to rounding, and of a time
SCORE, SECONDS = parts.number(-1e-6, 1 + 1e-6), parts.number(0.0, 1e9)
#: scores of a model; null if a metric is undefined for its codes
SCORES = {f"{name}{end}": parts.nullable(SCORE) for name in METRIC_NAMES for end in ("", "_chance")}
SCORED = parts.group(
    {
        **SCORES,
        # of a second set of evaluation images
        "all_images": parts.optional(parts.group(SCORES)),
        **dict.fromkeys(("dci", "dci_completeness", "dci_accuracy"), parts.optional(SCORE)),
        "iterations": parts.optional(MEASURED),
        "train_s": SECONDS,
    },
    others=True,
)


def task(name: str, result: Part = SCORED, module: str = "_tasks") -> Task:
    """Return a task of these experiments, whose runs have a parameter `dataset`."""
    function = f"drkm.experiments.disentanglement.{module}:{name}"
    return Task(function, revision=2, data=dataset_checksum, absent=DatasetError, result=result)


TASKS = {"disentangle": task("disentangle")}


@dataclass(frozen=True, kw_only=True)
class Study(Experiment):
    """An experiment whose runs are groups, with the sizes of all studies or its own."""

    tasks: Mapping[str, Task] = field(default_factory=lambda: TASKS)
    groups: Sequence[Group]
    #: scale → its attributes that differ in this study; its `seeds` is a minimum, whatever is requested
    own_sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def families(self) -> frozenset[str]:
        """Families of models by which its runs can be chosen."""
        return frozenset(group.family for group in self.groups if group.family)

    @property
    def adjustable(self) -> Mapping[str, Kind]:
        """Parameters of its runs that a variant can set."""
        families = {group.family for group in self.groups}
        return {name: known.kind for name, known in PARAMETERS.items() if families & set(known.families) - {""}}

    def accepts(self, name: str, value: Any) -> bool:
        """Whether some of its runs have as many layers as the value of a per-layer parameter has entries."""
        known = PARAMETERS[name]
        stacks = {len(stack) for group in self.groups if group.family in known.families for stack in group.stacks}
        return not known.from_layers or value == "auto" or (len(value) >= known.from_layers and len(value) in stacks)

    def sizes(self, scale: str, seeds: Seeds | None = None) -> StudySizes:
        """Return its sizes at a scale, with the scale's number of seeds or another."""
        return sizes_of(scale, seeds, self.own_sizes.get(scale, {}), self.changes)

    def configurations(self, scale: str, seeds: Seeds | None = None) -> list[Configuration]:
        """Return its distinct runs."""
        sizes = self.sizes(scale, seeds)
        return list(dict.fromkeys(run for group in self.groups for run in group.configurations(sizes)))

    def rows(self, results: Results, scale: str, seeds: Seeds | None = None) -> list[Row]:
        """Return the finished runs as rows, group by group."""
        sizes = self.sizes(scale, seeds)
        return [row for group in self.groups for row in group.found(results, sizes)]
