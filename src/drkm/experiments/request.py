"""Requests: experiments at a scale, optionally with other seeds or parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from drkm.experiments import registry
from drkm.experiments.experiment import Experiment
from drkm.experiments.settings import Seeds, Variant, written
from drkm.runs.configuration import Configuration, check_scale


@dataclass(frozen=True)
class Request:
    """Experiments by name, where "all" stands for every one, and their options."""

    names: Sequence[str] = ("all",)
    scale: str = "quick"
    #: seeds of the disentanglement experiments; by default those of the scale
    seeds: Seeds | None = None
    #: parameters with values other than the paper's; experiments without any of them are left out
    variant: Variant | None = None

    def __post_init__(self) -> None:
        check_scale(self.scale)
        for name in self.seeds.of if self.seeds else ():
            if name not in registry.families():
                raise ValueError(f"seeds: unknown model {name!r}, allowed are {', '.join(registry.families())}")

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """The requested experiments or their variants, each once."""
        known = registry.EXPERIMENTS
        asked = dict.fromkeys(one for name in self.names for one in (known if name == "all" else [name]))
        if not asked:
            raise ValueError(f"names: expected 'all' or names of experiments ({', '.join(known)}), got none")
        for name in asked:
            if name not in known:
                raise ValueError(f"experiment: unknown name {name!r}, allowed are {', '.join(known)} and all")
        found = {name: known[name] for name in asked}
        return found if self.variant is None else self.variant.of(found)

    @cached_property
    def runs(self) -> dict[str, list[Configuration]]:
        """The runs of each experiment."""
        return {name: found.configurations(self.scale, self.seeds) for name, found in self.experiments.items()}

    def beside(self, folder: Path) -> Request:
        """Return the request with the experiments that were written to a folder before, in the order of all."""
        others = replace(self, names=("all",)).experiments
        return replace(self, names=[name for name in others if name in self.experiments or (folder / name).is_dir()])

    @property
    def changes(self) -> dict[str, Any]:
        """All parameters changed in the variants of its experiments."""
        return {name: value for found in self.experiments.values() for name, value in found.changes.items()}

    @property
    def folder(self) -> str:
        """The name of the folder in which its experiments are written, such as "quick+gamma=2"."""
        return "+".join([self.scale, *(written({name: value}) for name, value in sorted(self.changes.items()))])

    @property
    def options(self) -> str:
        """The command-line options of this request."""
        seeds = [f"--seeds {self.seeds}"] if self.seeds else []
        return " ".join([f"--scale {self.scale}", *seeds, *([str(self.variant)] if self.variant else [])])
