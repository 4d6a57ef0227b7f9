"""The loop around the steps of a solver: limits, callbacks, the journal and Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers.accuracy import ROUNDING
from drkm.solvers.base import Solver
from drkm.solvers.result import Result, Status
from drkm.solvers.state import State


class Journal(Protocol):
    """Storage for the state of a run between interruptions."""

    def read(self) -> State | None:
        """Return the last state written, or None."""

    def write(self, state: State, *, now: bool = False) -> None:
        """Store a state if enough time has passed, or immediately."""


Callback = Callable[[dict[str, float]], Any]
Abandon = Callable[[Sequence[dict[str, float]]], bool]


def solve(
    solver: Solver,
    energy: Energy,
    H: Tensor,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    prepare: bool = True,
    callbacks: Sequence[Callback] = (),
    abandon: Abandon | None = None,
    journal: Journal | None = None,
    spent: float = 0.0,
) -> Result:
    """Run a solver from H until it converges or reaches a limit.

    `prepare` lets the solver search for a better starting point than H. A callback receives the history entry of each
    iteration and stops the run by returning True; `abandon` receives the history so far and ends a run that is not
    worth continuing. Ctrl-C ends the run with the best point so far. The seconds that earlier runs of the same start
    have `spent` count too.
    """
    clock = time.perf_counter()
    status: Status | None = None
    state = journal.read() if journal else None
    if state is not None:
        solver.resume(energy, state)
        energy.count.evaluations, spent = state.evaluations, state.seconds
    else:
        # A start off the manifold is allowed: solvers that stay on it begin at the nearest point.
        begin = stiefel.polar(H) if solver.on_manifold else H
        try:
            if prepare:
                begin = solver.prepare(energy, begin, lambda: _is_late(clock, max_seconds))
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        state = solver.start(energy, begin)
    try:
        while status is None:
            seconds = collectives.agreed(spent + time.perf_counter() - clock)
            state = replace(state, seconds=seconds, evaluations=energy.count.evaluations)
            _check_finite(state)
            entry = _record(state)
            stop = _asked_to_stop(callbacks, entry)
            limit = math.inf if solver.has_schedule else max_iter
            status = _verdict(solver, state, tol, limit, max_seconds, stop)
            if status is None and abandon is not None and collectives.agreed(abandon(state.history)):
                status = Status.ABANDONED
            if journal and (status is None or status.cut_short):
                journal.write(state, now=status is not None)
            if status is not None:
                break
            state = replace(solver.step(energy, state, tol), iteration=state.iteration + 1)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        # The interrupted step may have changed the energy already.
        solver.resume(energy, state)
        if journal and _can_resume(state):
            journal.write(state, now=True)
    return _result(energy, state, status, spent + time.perf_counter() - clock)


def _result(energy: Energy, state: State, status: Status, seconds: float) -> Result:
    return Result(
        H=state.H,
        objective=state.objective,
        feasibility=stiefel.feasibility(state.H),
        stationarity=state.stationarity,
        n_iter=state.iteration,
        n_evaluations=energy.count.evaluations,
        seconds=seconds,
        status=status,
        history=state.history,
    )


def _asked_to_stop(callbacks: Sequence[Callback], entry: dict[str, float]) -> bool:
    # Every callback is called, even if an earlier one asks to stop.
    answers = [callback(entry) for callback in callbacks]
    return bool(collectives.agreed(any(answers) or collectives.interrupted()))


def _is_late(clock: float, max_seconds: float | None) -> bool:
    late = max_seconds is not None and time.perf_counter() - clock > 0.5 * max_seconds
    return bool(collectives.agreed(late or collectives.interrupted()))


def _record(state: State) -> dict[str, float]:
    entry = {
        "iteration": state.iteration,
        "objective": state.objective,
        "stationarity": state.stationarity,
        "feasibility": state.feasibility,
        "seconds": state.seconds,
    }
    history = state.history
    if not history or history[-1]["iteration"] != state.iteration:
        history.append(entry)
    return entry


def _can_resume(state: State) -> bool:
    """Whether an interrupted run can go on from this state: it is in the history, not the last, and holds all rows."""
    recorded = bool(state.history) and state.history[-1]["iteration"] == state.iteration
    return recorded and state.status is None and collectives.current() is None


def _check_finite(state: State) -> None:
    """Raise an error unless there are numbers to show and to judge."""
    if not math.isfinite(state.objective) or not math.isfinite(state.stationarity):
        raise FloatingPointError("the energy or its gradient became NaN or inf: check the data, the kernels and eta")


def _verdict(
    solver: Solver, state: State, tol: float, max_iter: float, max_seconds: float | None, stop: bool
) -> Status | None:
    tol = max(tol, ROUNDING * torch.finfo(state.H.dtype).eps)
    if state.stationarity <= tol and state.feasibility <= tol:
        return Status.CONVERGED
    if state.status is not None:
        return solver.short_of_tolerance if state.status is Status.DONE else state.status
    if stop:
        return Status.INTERRUPTED
    if state.iteration >= max_iter:
        return Status.MAX_ITER
    if max_seconds is not None and state.seconds >= max_seconds:
        return Status.MAX_SECONDS
    return None
