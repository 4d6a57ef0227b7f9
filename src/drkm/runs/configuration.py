"""What one run of an experiment is: a task, its parameters and a seed, with a key that names its result for ever."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from drkm._version import __version__

SCALES = ("quick", "medium", "paper")


def check_scale(scale: str) -> str:
    """Return the name of a scale, or say which there are."""
    if scale not in SCALES:
        raise ValueError(f"scale: unknown name {scale!r}, allowed are {', '.join(SCALES)}")
    return scale


@dataclass(frozen=True)
class Configuration:
    """One run. Experiments that ask for the same run share its result.

    Parameters
    ----------
    task : str
        What is computed: a name in a `drkm.runs.tasks.TaskTable`.
    parameters : mapping
        Everything else the result depends on, as JSON: numbers, strings, lists.
    seed : int
    """

    task: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def canonical(self) -> str:
        """Return the run as JSON that is the same for the same run."""
        return canonical({"task": self.task, "parameters": dict(self.parameters), "seed": self.seed})

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.canonical() == other.canonical()

    @classmethod
    def from_json(cls, text: str) -> Configuration:
        """Return the run that `canonical` wrote."""
        found = json.loads(text)
        return cls(found["task"], found["parameters"], found["seed"])


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces; NaN is refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key_of(configuration: Configuration, *, data: str, revision: int) -> str:
    """Return the name of a result: a hash of the run, the checksum of its data and the version of the code.

    Parameters
    ----------
    configuration : Configuration
    data : str
        Checksum of the dataset, "" for data that the task itself generates.
    revision : int
        Of the task: raised by whoever changes what it computes, so that old results are not taken for new ones.
    """
    text = canonical({"run": configuration.canonical(), "data": data, "code": [__version__, revision]})
    return hashlib.sha256(text.encode()).hexdigest()


class Results:
    """Results of finished runs, by configuration.

    Parameters
    ----------
    found : iterable of (Configuration, dict, float)
        Runs with what their task returned and the seconds that it took.
    """

    def __init__(self, found: Iterable[tuple[Configuration, dict[str, Any], float]] = ()):
        self._found = {configuration: (result, seconds) for configuration, result, seconds in found}

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, configuration: Configuration) -> bool:
        return configuration in self._found

    def __getitem__(self, configuration: Configuration) -> dict[str, Any]:
        return self._found[configuration][0]

    def seconds(self, configuration: Configuration) -> float:
        """Return how long a run took."""
        return self._found[configuration][1]

    def rows(self, configurations: Iterable[Configuration]) -> Iterator[dict[str, Any]]:
        """Yield parameters, seed and result of those of the runs that are finished, as one flat row each."""
        for configuration in configurations:
            if configuration in self._found:
                result, seconds = self._found[configuration]
                yield {**configuration.parameters, "seed": configuration.seed, **result, "seconds": seconds}
