"""Checkpoints of long fits: the state of the solver is written to disk every few seconds.

Solvers are deterministic functions of their state, so a fit that is killed and started again with the same data and
parameters ends at the same result as one that was not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from drkm.distributed import collectives
from drkm.files import called
from drkm.kernels import Kernel
from drkm.solvers import Result, Solver, State
from drkm.solvers.base import read_result, read_state
from drkm.solvers.result import history_tensor
from drkm.solvers.state import Dimensions
from drkm.training.checkpoint import packing, slots, version_2
from drkm.training.checkpoint.slots import KIND, VERSION
from drkm.validation import parts
from drkm.validation.parts import Part


@dataclass(frozen=True)
class FinishedStart:
    """The result of one of several starts."""

    result: Result
    sigma2: list[float | None]

    def kernels(self, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
        """Return the kernels with the bandwidths that this start learned."""
        pairs = zip(kernels, self.sigma2, strict=True)
        return tuple(kernel if value is None else kernel.with_parameters(sigma2=value) for kernel, value in pairs)


@dataclass(frozen=True)
class Run:
    """The progress of a solver's run: the stage of its start, the bandwidths of that stage, and the state."""

    stage: int
    sigma2: list[float | None]
    state: State


class Checkpoint:
    """The checkpoint file of one fit.

    Parameters
    ----------
    path : str or path
        Where to write. The file is removed when the fit ends, unless `keep` is set or the fit was interrupted or
        reached `max_seconds`. Then the same fit resumes from it, with a larger `max_seconds` if that was the reason;
        with several starts, all that ran out of time resume. Processes that share the samples keep two files each, with
        their rank in the name (`drkm.training.checkpoint.slots`).
    every : float
        Minimum number of seconds between two writes.
    keep : bool
        Whether the file is kept after the fit, with its result, until the caller has stored the result and calls
        `remove`.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 5.0, *, keep: bool = False):
        self.path = Path(path)
        self.every = every
        self.keep = keep
        self.fingerprint = ""
        #: whether the fit ended before all of its starts, so that it can be resumed
        self.cut_short = False
        self._place: slots.Place = slots.OneFile(self.path)
        self._last_write = -float("inf")
        self._finished: dict[int, FinishedStart] = {}
        self._runs: dict[int, Run] = {}

    def bind(self, fingerprint: str, solver: Solver, dimensions: Dimensions) -> None:
        """Read the file, if there is one, and check that it belongs to this fit and that the solver can resume."""
        self.fingerprint = fingerprint
        self._finished, self._runs = {}, {}
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint: there is no folder {self.path.parent}")
        self._place = slots.place(self.path)
        with called("checkpoint"):
            content = self._place.read(dimensions.device)
        if content is None:
            return
        tensors, header = content
        if collectives.agreed(header.get("fingerprint") != fingerprint):
            raise ValueError(
                f"checkpoint: {self.path} belongs to a fit with other data or parameters: "
                "remove it or choose another path"
            )
        if header["version"] < version_2.VERSION:
            raise ValueError(f"checkpoint: {self.path} is from an older drkm, remove it or choose another path")
        try:
            self._restore(tensors, header, solver, dimensions)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"checkpoint: {self.path} is damaged ({error}), remove it or choose another path"
            ) from error

    def _restore(
        self, tensors: dict[str, Tensor], header: dict[str, Any], solver: Solver, dimensions: Dimensions
    ) -> None:
        if header["version"] == version_2.VERSION:
            header = version_2.upgraded(header, tensors, solver.state_class, dimensions)
        parts.check(header, _parts(dimensions), others=True)
        parts.check(tensors, {f"finished{number}": dimensions.codes for number in header["finished"]}, others=True)
        left = dict(tensors)
        codes = {number: left.pop(f"finished{number}") for number in header["finished"]}
        for number, entry in header["finished"].items():
            result = read_result(codes[number], packing.with_history(packing.unpack(entry["result"], left)))
            self._finished[int(number)] = FinishedStart(result, entry["sigma2"])
        for number, entry in header["runs"].items():
            values = packing.with_history(packing.unpack(entry["state"], left))
            state = read_state(solver, dimensions, values)
            self._runs[int(number)] = Run(entry["stage"], entry["sigma2"], state)
        parts.check(left, {})

    def finished_starts(self) -> dict[int, FinishedStart]:
        """Return the starts that had finished before the interruption, by number."""
        return dict(self._finished)

    def finish_start(self, number: int, result: Result, kernels: Sequence[Kernel]) -> None:
        """Store the result of a start."""
        self._finished[number] = FinishedStart(result, _sigma2_of(kernels))
        self._runs.pop(number, None)
        self._write()

    def finish_fit(self) -> None:
        """Delete the file unless it is kept or the fit can be resumed; call this when nothing of the fit can fail."""
        # A process that was lost takes its rows of the model with it: all resume from their files.
        collectives.agreed(0.0)
        if not self.keep and not self.cut_short:
            self.remove()

    def spent(self) -> float:
        """Return the seconds that solvers had spent before the interruption."""
        ended = [start.result.seconds for start in self._finished.values()]
        return sum([*ended, *(run.state.seconds for run in self._runs.values())])

    def interrupted_stage(self, number: int) -> tuple[int, list[float | None]] | None:
        """Return the stage at which this start was interrupted, and its bandwidths at that time."""
        run = self._runs.get(number)
        return None if run is None else (run.stage, run.sigma2)

    def journal(self, stage: tuple[int, int], kernels: Sequence[Kernel]) -> _StageJournal:
        """Return the journal of one run of a solver."""
        return _StageJournal(self, stage, _sigma2_of(kernels))

    def remove(self) -> None:
        """Delete the file."""
        self._place.remove()

    def store(self, stage: tuple[int, int], sigma2: list[float | None], state: State, *, now: bool = False) -> None:
        """Write the state of a run, if the last write was long enough ago or `now` is set."""
        if not now and collectives.agreed(time.monotonic() - self._last_write) < self.every:
            return
        self._runs[stage[0]] = Run(stage[1], sigma2, state)
        self._write()
        self._last_write = time.monotonic()

    def recall(self, stage: tuple[int, int]) -> State | None:
        """Return the stored state of this stage; only the first call returns it."""
        run = self._runs.get(stage[0])
        return self._runs.pop(stage[0]).state if run is not None and run.stage == stage[1] else None

    def _write(self) -> None:
        # Histories are tensors: the length of a header has a limit, and a long fit has millions of entries.
        tensors: dict[str, Tensor] = {}
        runs: dict[int, Any] = {}
        finished: dict[int, Any] = {}
        for number, run in self._runs.items():
            state = packing.pack(replace(run.state, history=[]), f"run{number}", tensors)
            state["history"] = packing.pack(history_tensor(run.state.history), f"run{number}.history", tensors)
            runs[number] = {"stage": run.stage, "sigma2": run.sigma2, "state": state}
        for number, start in self._finished.items():
            tensors[f"finished{number}"] = start.result.H
            history = packing.pack(history_tensor(start.result.history), f"finished{number}.history", tensors)
            finished[number] = {"result": {**start.result.facts(), "history": history}, "sigma2": start.sigma2}
        header = {
            "kind": KIND,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "runs": runs,
            "finished": finished,
        }
        with called("checkpoint"):
            self._place.write(tensors, header)


@dataclass
class _StageJournal:
    checkpoint: Checkpoint
    stage: tuple[int, int]
    sigma2: list[float | None]

    def read(self) -> State | None:
        return self.checkpoint.recall(self.stage)

    def write(self, state: State, *, now: bool = False) -> None:
        self.checkpoint.store(self.stage, self.sigma2, state, now=now)


def _parts(dimensions: Dimensions) -> dict[str, Part]:
    """Return the requirements for the header of a checkpoint; those of states and results are theirs."""
    sigma2 = parts.each([parts.positive if has else parts.nothing for has in dimensions.widths])
    run = {
        "stage": parts.count(most=dimensions.stages),
        "sigma2": sigma2,
        "state": parts.group({}, others=True),
    }
    finished = {"result": parts.group({}, others=True), "sigma2": sigma2}
    return {"runs": parts.numbered(parts.group(run)), "finished": parts.numbered(parts.group(finished))}


def _sigma2_of(kernels: Sequence[Kernel]) -> list[float | None]:
    return [kernel.bandwidth if kernel.has_bandwidth else None for kernel in kernels]
