"""The suite that every solver inherits: it supplies a maker, its guarantees, and its accuracy."""

from __future__ import annotations

import copy
import itertools
import json
from dataclasses import is_dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from dense_oracle import draw, structured
from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers import Result, Solver, State, Status, TrustRegion, solve
from drkm.solvers.base import read_state
from drkm.solvers.state import Dimensions
from drkm.training import starts
from drkm.training.checkpoint import packing

N = 60
X = structured(N)


def same(one: object, other: object) -> bool:
    """Whether two states have the same bits."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return type(one) is type(other) and all(same(value, vars(other)[name]) for name, value in vars(one).items())
    return one == other


class Recorder:
    """A journal that keeps a copy of every state and starts empty."""

    def __init__(self):
        self.states: list[State] = []

    def read(self) -> None:
        return None

    def write(self, state: State, *, now: bool = False) -> None:
        # A copy that later iterations cannot change, like a file.
        self.states.append(copy.deepcopy(state))


class Replay:
    """A journal whose last state is the given one."""

    def __init__(self, state: State):
        self.state = state

    def read(self) -> State:
        return copy.deepcopy(self.state)

    def write(self, state: State, *, now: bool = False) -> None:
        pass


def make_energy(sizes=(4, 2), sigma2=(20.0, 8 / N), center=False, dtype=torch.float64, points=X) -> Energy:
    return Energy(points.to(dtype), [RBF(value) for value in sigma2], sizes, (1.0,) * len(sizes), Dense(), center)


def nearby(H: Tensor) -> Tensor:
    """Return a point of the manifold near an optimum, and nearer to it than to any other."""
    return stiefel.polar(H + 1e-4 * draw(*H.shape, seed=3))


class SolverSuite:
    descends = True
    #: the iteration at which runs are cut short
    cut = 3
    #: how far from the manifold it may end
    feasible = 1e-12
    limits: ClassVar[dict] = {"max_iter": 4000}
    #: how far from the manifold it may end in float32, and the limits of a run there
    single_feasible = 1e-6
    single: ClassVar[dict] = {}
    #: relative difference of J between float32, float64 and permuted samples
    agreement = 1e-4

    def make(self) -> Solver:
        raise NotImplementedError

    def energy(self, **options) -> Energy:
        return make_energy(**options)

    def begin(self, energy: Energy) -> Tensor:
        return starts.kernel_pca(energy)

    def run(self, **options) -> Result:
        energy = options.pop("energy", None) or self.energy()
        options = {**self.limits, **options}
        return solve(self.make(), energy, options.pop("H", self.begin(energy)), **options)

    def recorded(self) -> tuple[Result, list[State]]:
        recorder = Recorder()
        return self.run(journal=recorder), recorder.states

    def test_reaches_a_stationary_point(self):
        result = self.run(tol=1e-6)
        assert result.converged
        assert result.stationarity <= 1e-6
        assert result.feasibility <= self.feasible
        assert result.outcome.startswith(f"converged in {result.n_iter} iteration")

    def test_centred_layers_reach_a_stationary_point(self):
        assert self.run(energy=self.energy(center=True)).stationarity <= 1e-6

    def test_reports_what_is_true_of_its_point(self):
        energy = self.energy()
        result = self.run(energy=energy)
        assert result.n_evaluations == energy.count.evaluations
        value, G, _ = energy.value_and_gradient(result.H)
        assert result.objective == pytest.approx(value, rel=1e-12)
        assert result.stationarity == pytest.approx(stiefel.stationarity(result.H, G), rel=1e-6, abs=1e-12)
        assert result.feasibility == stiefel.feasibility(result.H)

    def test_two_runs_agree_in_every_bit(self):
        first = self.run()
        torch.rand(5)
        second = self.run()
        assert torch.equal(first.H, second.H)
        assert first.objective == second.objective
        assert first.n_evaluations == second.n_evaluations

    def test_history_has_one_entry_an_iteration(self):
        result = self.run()
        assert [entry["iteration"] for entry in result.history] == list(range(result.n_iter + 1))
        assert result.history[-1]["objective"] == result.objective
        assert all(b["seconds"] >= a["seconds"] for a, b in itertools.pairwise(result.history))

    def test_energy_never_rises(self):
        if not self.descends:
            pytest.skip("the energy of this solver is not the one it lowers")
        values = [entry["objective"] for entry in self.run().history]
        slack = 4 * torch.finfo(torch.float64).eps * abs(values[0])
        assert all(later <= earlier + slack for earlier, later in itertools.pairwise(values))

    def test_every_iterate_is_on_the_manifold(self):
        if not self.make().on_manifold:
            pytest.skip("this solver leaves the manifold")
        _, states = self.recorded()
        assert all(stiefel.feasibility(state.H) <= 1e-12 for state in states)

    def test_a_start_off_the_manifold_is_a_start(self):
        energy = self.energy()
        H = 1.5 * self.begin(energy)
        before = H.clone()
        assert self.run(energy=energy, H=H).stationarity <= 1e-6
        assert torch.equal(H, before)

    def test_max_iter_ends_the_run_and_says_what_to_change(self):
        result = self.run(max_iter=self.cut)
        assert result.status is Status.MAX_ITER
        assert result.n_iter == self.cut
        assert not result.converged
        assert f"max_iter after {self.cut} iteration" in result.outcome
        assert "raise max_iter" in result.advice

    def test_max_seconds_ends_the_run_and_says_what_to_change(self):
        result = self.run(max_seconds=1e-9)
        assert result.status is Status.MAX_SECONDS
        assert "raise max_seconds" in result.advice

    def test_a_callback_that_returns_true_ends_the_run_after_all_were_told(self):
        told = []

        def stop(entry):
            return entry["iteration"] == self.cut

        result = self.run(callbacks=(stop, lambda entry: told.append(entry["iteration"])))
        assert result.status is Status.INTERRUPTED
        assert result.n_iter == self.cut
        assert told == list(range(self.cut + 1))
        assert "checkpoint" in result.advice

    def test_ctrl_c_in_a_callback_returns_the_best_point_marked_interrupted(self):
        def interrupt(entry):
            if entry["iteration"] == self.cut:
                raise KeyboardInterrupt

        result = self.run(callbacks=(interrupt,))
        stopped = self.run(callbacks=(lambda entry: entry["iteration"] == self.cut,))
        assert result.status is Status.INTERRUPTED
        assert not result.converged
        assert torch.equal(result.H, stopped.H)
        if self.descends:
            assert result.objective == min(entry["objective"] for entry in result.history)

    def test_ctrl_c_inside_an_evaluation_returns_the_last_whole_iteration(self, monkeypatch):
        energy = self.energy()
        H = self.begin(energy)
        whole, calls = energy.value_and_gradient, itertools.count()

        def interrupted(H):
            if next(calls) == self.cut + 1:
                raise KeyboardInterrupt
            return whole(H)

        monkeypatch.setattr(energy, "value_and_gradient", interrupted)
        result = self.run(energy=energy, H=H, prepare=False)
        assert result.status is Status.INTERRUPTED
        assert result.n_iter == len(result.history) - 1
        assert result.objective == pytest.approx(energy.value(result.H), rel=1e-12)
        assert result.objective == result.history[-1]["objective"]

    def test_resuming_after_any_iteration_ends_in_the_same_bits(self):
        result, states = self.recorded()
        assert len(states) == result.n_iter
        picked = {0, 1, 2, len(states) // 3, len(states) // 2, len(states) - 1} & set(range(len(states)))
        for k in picked:
            again = self.run(journal=Replay(states[k]))
            assert torch.equal(again.H, result.H), k
            assert again.objective == result.objective
            assert again.n_iter == result.n_iter
            assert again.n_evaluations == result.n_evaluations
            assert again.status is result.status
            assert [e["objective"] for e in again.history] == [e["objective"] for e in result.history]

    def test_a_state_is_read_from_a_file_as_it_was_written(self):
        _, states = self.recorded()
        tensors = {}
        header = json.loads(json.dumps(packing.pack(states[-1], "run", tensors)))
        sizes, rows = self.energy().sizes, len(states[-1].H)
        dimensions = Dimensions(rows, sizes, torch.float64, torch.device("cpu"), (True,) * len(sizes))
        again = read_state(self.make(), dimensions, packing.unpack(header, tensors))
        assert not tensors
        assert same(again, states[-1])

    def test_a_point_that_is_optimal_already_converges_at_once(self):
        H = self.run(tol=1e-8).H
        again = self.run(H=H, tol=1e-6)
        assert again.converged
        assert again.n_iter == 0

    def test_an_energy_that_is_not_a_number_is_an_error(self, monkeypatch):
        energy = self.energy()
        H = self.begin(energy)
        whole = energy.value_and_gradient
        monkeypatch.setattr(energy, "value_and_gradient", lambda H: whole(H)._replace(value=float("nan")))
        with pytest.raises(FloatingPointError, match="NaN or inf"):
            self.run(energy=energy, H=H, prepare=False)

    def test_float32_permuted_samples_and_float64_agree_from_a_near_optimal_start(self):
        energy = self.energy()
        # Newton's method detects negative curvature, so that it ends at a minimum and not at a saddle.
        near = nearby(solve(TrustRegion(), energy, self.begin(energy), tol=1e-8).H)
        double = self.run(H=near).objective
        order = torch.randperm(N, generator=torch.Generator().manual_seed(1))
        permuted = self.run(energy=self.energy(points=X[order]), H=near[order]).objective
        single_energy = self.energy(dtype=torch.float32)
        single = self.run(energy=single_energy, H=near.float(), tol=1e-5, **self.single)
        assert single.H.dtype == torch.float32
        assert permuted == pytest.approx(double, rel=self.agreement)
        assert single.objective == pytest.approx(double, rel=self.agreement)
        assert single.feasibility <= self.single_feasible
