"""Configurations of runs: a task, its parameters and a seed, with a permanent key for the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from drkm._version import __version__

SCALES = ("quick", "medium", "paper")


def check_scale(scale: str) -> str:
    """Return the name of a scale, or raise an error that lists them."""
    if scale not in SCALES:
        raise ValueError(f"scale: unknown name {scale!r}, allowed are {', '.join(SCALES)}")
    return scale


@dataclass(frozen=True)
class Configuration:
    """One run. Experiments with the same run share its result.

    Parameters
    ----------
    task : str
        Name of a task in a `drkm.runs.tasks.TaskTable`.
    parameters : mapping
        Everything else that the result depends on, as JSON values.
    seed : int
    """

    task: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def canonical(self) -> str:
        """Return the canonical JSON of the run."""
        return canonical({"task": self.task, "parameters": dict(self.parameters), "seed": self.seed})

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.canonical() == other.canonical()

    @classmethod
    def from_json(cls, text: str, about: str = "configuration") -> Configuration:
        """Rebuild a run from its canonical JSON; errors begin with `about`."""
        found = parse_object(text, about)
        kinds = {"task": str, "parameters": dict, "seed": int}
        if set(found) != set(kinds) or not all(isinstance(found[name], kind) for name, kind in kinds.items()):
            raise ValueError(f"{about}: expected a task, parameters and a seed, got {text!r:.200}")
        return cls(found["task"], found["parameters"], found["seed"])


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces; NaN is refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def parse_object(text: Any, about: str, kind: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> dict[str, Any]:
    """Parse a JSON object; errors begin with `about`."""
    try:
        found = json.loads(text, object_hook=kind)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{about}: expected a JSON object, got {text!r:.200}")
    return found


def key_of(configuration: Configuration, *, data: str, revision: int) -> str:
    """Return the key of a result: a hash of the run, the checksum of its data and the version of the code.

    Parameters
    ----------
    configuration : Configuration
    data : str
        Checksum of the dataset, "" for data that the task itself generates.
    revision : int
        Revision of the task; raise it when the task changes, so that old results are not reused.
    """
    return result_key(configuration.canonical(), data, __version__, revision)


def result_key(run: str, data: str, version: str, revision: int) -> str:
    """Return the key of a result for any version of the code, from the JSON of its run."""
    text = canonical({"run": run, "data": data, "code": [version, revision]})
    # Lone surrogates only occur in damaged rows, which must be detected without failing here.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class Fields(dict[str, Any]):
    """A result or a part of one; missing fields raise an error that names the run.

    Parameters
    ----------
    values : mapping
    about : str
        Description for the error message.
    """

    def __init__(self, values: Mapping[str, Any], about: str):
        super().__init__(values)
        self._about = about

    @classmethod
    def from_json(cls, text: Any, about: str) -> Fields:
        """Parse a JSON object, with all nested objects as `Fields`."""
        found = parse_object(text, about, lambda values: cls(values, about))
        assert isinstance(found, cls)
        return found

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"{self._about} has no field {name!r}")


class Results:
    """Results of finished runs, by configuration.

    Parameters
    ----------
    found : iterable of (Configuration, dict, float)
        Runs with their results and run times in seconds.
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
        """Return the run time in seconds."""
        return self._found[configuration][1]

    def rows(self, configurations: Iterable[Configuration]) -> Iterator[dict[str, Any]]:
        """Yield parameters, seed and result of each finished run as one flat row."""
        for configuration in configurations:
            if configuration in self._found:
                result, seconds = self._found[configuration]
                row = {**configuration.parameters, **result, "seed": configuration.seed, "seconds": seconds}
                yield Fields(row, f"the result of {configuration.canonical()}")
