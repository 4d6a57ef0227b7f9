from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from dense_oracle import structured
from drkm import ConstrDRKM
from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.problem.energy import Energy
from drkm.solvers import Result, Status, by_name, solve
from drkm.training import starts
from drkm.training.checkpoint import Checkpoint
from drkm.training.race import BY_TURNS, HALFWAY, TRY_OTHER, Race
from drkm.training.starts import FAR, NEAR

X = structured(120)


def entries(*values: float) -> list[dict[str, float]]:
    """Return a history with these energies, which is halfway at the second."""
    steps = [10 * HALFWAY, HALFWAY, 1e-6]
    return [{"objective": value, "stationarity": steps[min(i, 2)]} for i, value in enumerate(values)]


def ended(*values: float, status: Status = Status.CONVERGED) -> Result:
    return Result(torch.zeros(1, 1), values[-1], 0.0, 1e-6, len(values), len(values), 0.0, status, entries(*values))


def race(*results: Result) -> Race:
    found = Race()
    for result in results:
        found.add(result)
    return found


class TestAbandoning:
    def test_a_start_with_a_higher_energy_halfway_is_behind(self):
        found = race(ended(-1.0, -5.0, -6.0))
        assert found.is_behind(entries(-4.0, -4.9))
        assert not found.is_behind(entries(-4.0, -5.1))

    def test_before_it_is_halfway_no_start_is_behind(self):
        assert not race(ended(-1.0, -5.0, -6.0)).is_behind(entries(-0.5))

    def test_a_run_that_goes_on_after_an_interruption_is_judged_by_where_it_was_halfway(self):
        assert race(ended(-1.0, -5.0, -6.0)).is_behind(entries(-4.0, -4.9, -5.5))

    def test_the_first_start_is_never_behind(self):
        assert not race().is_behind(entries(-1.0, -2.0, -3.0))

    def test_all_are_compared_with_the_best(self):
        found = race(ended(-1.0, -5.0, -6.0), ended(-1.0, -7.0, -8.0), ended(-1.0, -4.0, status=Status.ABANDONED))
        assert found.best.objective == -8.0
        assert found.objectives == [-6.0, -8.0, None]
        assert found.is_behind(entries(-4.0, -6.5))

    def test_a_solver_ends_when_it_is_abandoned_and_not_as_one_that_could_go_on(self):
        energy = Energy(X, [RBF(50.0), RBF(0.1)], (6, 3), (1.0, 1.0), Dense())
        result = solve(by_name("auto", 2), energy, starts.kernel_pca(energy), abandon=lambda history: len(history) > 4)
        assert result.status is Status.ABANDONED
        assert result.n_iter == 4
        assert not result.converged
        assert not result.status.cut_short

    def test_an_abandoned_start_of_an_earlier_version_is_read_as_one(self):
        result = ended(-1.0, -4.0, status=Status.ABANDONED)
        facts = {**result.facts(), "status": "given_up", "history": []}
        assert Result.from_facts(result.H, facts).status is Status.ABANDONED
        assert "abandoned after" in result.outcome
        with pytest.raises(ValueError, match="'left' is not a valid Status"):
            Status("left")

    def test_what_has_converged_is_not_abandoned(self):
        energy = Energy(X, [RBF(50.0), RBF(0.1)], (6, 3), (1.0, 1.0), Dense())
        result = solve(by_name("auto", 2), energy, starts.kernel_pca(energy), tol=0.9, abandon=lambda history: True)
        assert result.converged


class TestLengths:
    def test_the_first_two_begin_where_asked_and_further_ones_near_and_far_by_turns(self):
        found, lengths = Race(), []
        for _ in range(BY_TURNS + 2):
            lengths.append(found.length)
            found.add(ended(-1.0, -2.0, -3.0))
        assert lengths == [0.0, 0.0, NEAR, FAR, NEAR, FAR]

    @pytest.mark.parametrize("better", [NEAR, FAR])
    def test_then_the_length_that_did_better_is_preferred_and_the_other_tried_now_and_then(self, better):
        found, lengths = Race(), []
        for number in range(BY_TURNS + 2 + 3 * TRY_OTHER):
            lengths.append(found.length)
            found.add(ended(-1.0, -5.0 if found.length == better and number > 2 else -4.0, -6.0))
        later = lengths[BY_TURNS + 2 :]
        assert later.count(better) == len(later) - 3


class TestFits:
    def fit(self, n_init: int, **options) -> ConstrDRKM:
        return ConstrDRKM((6, 3), kernel=[RBF(50.0), RBF(0.05)], n_init=n_init, random_state=0, **options).fit(
            X.numpy()
        )

    def test_more_starts_never_end_higher_and_most_are_abandoned(self):
        energies = [self.fit(count).objective_ for count in (1, 4, 12)]
        assert energies == sorted(energies, reverse=True)
        assert energies[-1] < energies[0]
        objectives = self.fit(12).fitted_.objectives
        assert len(objectives) == 12
        assert objectives.count(None) >= 6
        assert min(value for value in objectives if value is not None) == energies[-1]

    def test_starts_that_are_not_abandoned_end_as_they_would_have_alone(self, monkeypatch):
        raced = self.fit(BY_TURNS + 1).fitted_.objectives
        monkeypatch.setattr(Race, "is_behind", lambda self, history: False)
        alone = self.fit(BY_TURNS + 1).fitted_.objectives
        assert None in raced
        assert None not in alone
        assert all(own in (None, value) for own, value in zip(raced, alone, strict=True))

    def test_a_fit_that_stops_between_starts_goes_on_as_it_would_have(self, tmp_path):
        whole = self.fit(9)
        path, runs = tmp_path / "checkpoint", 0

        def stops(entry):
            nonlocal runs
            runs += entry["iteration"] == 0
            if runs == 7:
                raise SystemExit

        with pytest.raises(SystemExit):
            self.fit(9, checkpoint=Checkpoint(path, every=0), callbacks=stops)
        assert path.exists()
        again = self.fit(9, checkpoint=Checkpoint(path, every=0))
        np.testing.assert_array_equal(again.codes_, whole.codes_)
        assert again.fitted_.objectives == whole.fitted_.objectives

    def test_starts_off_the_manifold_are_not_compared_halfway(self, monkeypatch):
        monkeypatch.setattr(Race, "is_behind", lambda self, history: True)
        with pytest.warns(ConvergenceWarning, match="max_iter after 5 iterations"):
            model = self.fit(3, solver="augmented-lagrangian", max_iter=5)
        assert None not in model.fitted_.objectives
