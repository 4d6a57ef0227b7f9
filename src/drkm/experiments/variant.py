"""One's own variants of experiments: parameters that are set to other values, kept apart from the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drkm.experiments.experiment import Experiment


@dataclass(frozen=True)
class Variant:
    """Parameters by name, with the texts of their values."""

    texts: Mapping[str, str]

    @classmethod
    def read(cls, settings: Iterable[str]) -> Variant:
        """Return what settings such as "gamma=2" say."""
        texts: dict[str, str] = {}
        for setting in settings:
            name, equals, value = (part.strip() for part in setting.partition("="))
            if not (name and equals and value):
                raise ValueError(f"set: expected a name and a value as in gamma=2, got {setting!r}")
            if name in texts:
                raise ValueError(f"set: {name!r} is set twice, to {texts[name]} and to {value}")
            texts[name] = value
        return cls(texts)

    def __str__(self) -> str:
        """Return the options of the command line that say so."""
        return " ".join(f"--set {name}={text}" for name, text in self.texts.items())

    def of(self, experiments: Mapping[str, Experiment]) -> dict[str, Experiment]:
        """Return the variants of those experiments that have one of the parameters; each must be one of some."""
        known = {name: kind for found in experiments.values() for name, kind in found.adjustable.items()}
        for name, text in self.texts.items():
            if name not in known:
                allowed = f"allowed are {', '.join(sorted(known))}" if known else "these experiments have none"
                raise ValueError(f"set: unknown name {name!r}, {allowed}")
            if known[name].read(text) is None:
                raise ValueError(f"set: {name} takes {known[name].allowed}, got {text!r}")
        changes = {name: self._changes(found) for name, found in experiments.items()}
        for name, text in self.texts.items():
            if not any(name in own for own in changes.values()):
                raise ValueError(f"set: {name} has an entry per layer, and no run has as many layers as {text!r}")
        return {name: found.adjusted(changes[name]) for name, found in experiments.items() if changes[name]}

    def _changes(self, experiment: Experiment) -> dict[str, Any]:
        kinds = experiment.adjustable
        values = {name: kinds[name].read(text) for name, text in self.texts.items() if name in kinds}
        return {name: value for name, value in values.items() if experiment.accepts(name, value)}
