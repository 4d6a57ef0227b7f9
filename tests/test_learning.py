from __future__ import annotations

import itertools
import math

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from dense_oracle import draw, network, orthonormal, structured
from drkm import ConstrDRKM, load
from drkm.gram import Dense
from drkm.inference.first_gram import energy_of
from drkm.kernels import RBF, FeatureMap, Laplacian, Linear, Matern, Polynomial
from drkm.problem import learning
from drkm.problem.energy import Energy
from drkm.solvers import LBFGS, Penalty, Status, solve
from drkm.training import Plan, starts, train

N = 60
X = structured(N)
GAUSSIANS = (RBF(20.0), RBF(0.1))


def make(kernels=GAUSSIANS, sizes=(4, 2), center=False, points=X):
    return Energy(points, kernels, sizes, (1.0,) * len(sizes), Dense(), center)


def bandwidths(energy: Energy) -> dict[int, float]:
    return {layer: energy.kernels[layer].sigma2 for layer in learning.learnable_layers(energy)}


class TestBandwidths:
    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize("kernel", [RBF, Laplacian, Matern])
    def test_learning_lowers_the_energy(self, kernel, center):
        energy = make((kernel(sigma2=20.0), kernel(sigma2=0.1)), center=center)
        H = starts.kernel_pca(energy)
        before, begin = energy.value(H), bandwidths(energy)
        change = learning.improve_bandwidths(energy, H, begin)
        assert energy.value(H) < before
        moved = [abs(math.log(bandwidths(energy)[layer] / begin[layer])) for layer in begin]
        assert change == pytest.approx(max(moved), rel=1e-9)

    def test_centred_learning_ends_where_the_gradient_vanishes(self):
        energy = make((RBF(20.0),), (4,), center=True)
        H = starts.kernel_pca(energy)
        learning.improve_bandwidths(energy, H, bandwidths(energy))
        assert abs(energy.bandwidth_gradient(H, 0)) < 1e-4 * abs(energy.value(H))

    def test_bandwidths_stay_within_the_range(self):
        energy = make()
        H = starts.kernel_pca(energy)
        begin = bandwidths(energy)
        # The layer that contains the constant vector drives the bandwidth to infinity.
        for _ in range(5):
            learning.improve_bandwidths(energy, H, begin)
        for layer, sigma2 in bandwidths(energy).items():
            assert abs(math.log(sigma2 / begin[layer])) <= math.log(learning.RANGE) * (1 + 1e-9)
        assert bandwidths(energy)[0] > 10 * begin[0]

    @pytest.mark.parametrize("kernel", [RBF, Laplacian, Matern])
    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize("layer", [0, 1])
    def test_gradient_is_the_limit_of_differences(self, kernel, center, layer):
        begin, h = {0: 20.0, 1: 0.1}, 1e-5
        energy = make((kernel(sigma2=20.0), kernel(sigma2=0.1)), center=center)
        H = orthonormal(N, 6)
        found = energy.bandwidth_gradient(H, layer)
        ends = []
        for t in (h, -h):
            learning.set_bandwidths(energy, {layer: begin[layer] * math.exp(t)})
            ends.append(energy.value(H))
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-9)

    @pytest.mark.parametrize(("dtype", "offset"), [(torch.float32, 300.0), (torch.float64, 1e6)])
    def test_gradient_does_not_depend_on_where_the_origin_of_the_samples_is(self, dtype, offset):
        H = orthonormal(N, 4)
        expected = make((RBF(20.0),), (4,)).bandwidth_gradient(H, 0)
        shifted = make((RBF(20.0),), (4,), points=(X + offset).to(dtype))
        assert shifted.bandwidth_gradient(H.to(dtype), 0) == pytest.approx(expected, rel=1e-4)

    def test_only_isotropic_kernels_have_a_bandwidth(self):
        energy = make((Linear(), Matern(2.5, 0.1), Polynomial(2, 1.0)), (3, 2, 2))
        assert learning.learnable_layers(energy) == [1]

    def test_only_the_named_layers_change(self):
        energy = make()
        learning.improve_bandwidths(energy, starts.kernel_pca(energy), {1: 0.1})
        assert energy.kernels[0] == RBF(20.0)
        assert energy.kernels[1] != RBF(0.1)


class TestFeatureMaps:
    def energy(self, layer: int, center: bool, trainable: bool = True) -> Energy:
        if layer == 0:
            kernels = [FeatureMap(network(3), trainable=trainable), RBF(0.1)]
            return make(kernels, (3, 2), center, draw(N, 3))
        return make([RBF(20.0), FeatureMap(network(3), trainable=trainable)], (3, 2), center)

    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize("layer", [0, 1])
    def test_training_lowers_the_energy_and_stays_normalised(self, layer, center):
        energy = self.energy(layer, center)
        H = starts.kernel_pca(energy)
        before = energy.value(H)
        change = learning.improve_feature_maps(energy, H)
        after = energy.value(H)
        assert after < before
        assert change == pytest.approx((before - after) / abs(before), rel=1e-9)
        points = energy.X if layer == 0 else H[:, :3]
        torch.testing.assert_close(energy.kernels[layer].diagonal(points), torch.ones(N).double())

    def test_a_map_that_is_not_trainable_stays(self):
        energy = self.energy(1, False, trainable=False)
        before = [p.clone() for p in energy.kernels[1].module_parameters()]
        assert learning.trainable_layers(energy) == []
        assert learning.improve_feature_maps(energy, starts.kernel_pca(energy)) == 0.0
        assert all(torch.equal(a, b) for a, b in zip(before, energy.kernels[1].module_parameters(), strict=True))

    def test_the_first_gram_matrix_follows_its_map(self):
        energy = self.energy(0, False)
        H = starts.kernel_pca(energy)
        learning.improve_feature_maps(energy, H)
        fresh = make(energy.kernels, (3, 2), False, energy.X)
        assert energy.value(H) == pytest.approx(fresh.value(H), rel=1e-13)

    def test_alternating_with_the_codes_never_raises_the_energy(self):
        energy = self.energy(1, False)
        H = starts.kernel_pca(energy)
        values = [energy.value(H)]
        for _ in range(3):
            H = solve(LBFGS(warmup=False), energy, H, tol=1e-2, max_iter=15).H
            values.append(energy.value(H))
            learning.improve_feature_maps(energy, H)
            values.append(energy.value(H))
        assert all(later <= earlier + 1e-12 * abs(earlier) for earlier, later in itertools.pairwise(values))


class TestSeveralStarts:
    """Every start trains its own copy of the caller's feature map."""

    def train(self, n_init: int, seed: int = 0):
        plan = Plan(
            sizes=(3, 2),
            kernels=(FeatureMap(network(3), trainable=True), RBF(0.1)),
            eta=(1.0, 1.0),
            lam=(1.0, 1.0),
            strategy=Dense(),
            solver=LBFGS(),
            init="orthogonal",
            n_init=n_init,
            encoder="projection",
            tol=1e-5,
            max_iter=100,
            seed=seed,
        )
        return train(draw(N, 3), plan)[0]

    def test_a_later_start_ends_where_it_would_have_ended_alone(self):
        both = self.train(2).objectives
        assert both == pytest.approx([self.train(1).objectives[0], self.train(1, seed=1).objectives[0]], rel=1e-9)

    @pytest.mark.parametrize("seed", range(3))
    def test_the_map_that_is_kept_is_that_of_the_best_start(self, seed):
        fitted = self.train(2, seed)
        assert energy_of(fitted).value(fitted.H) == pytest.approx(fitted.result.objective, rel=1e-10)


class TestRounds:
    """Codes and bandwidths in alternation, from a start that the solver warms up once."""

    def plan(self, center: bool, eta: float = 1.0) -> Plan:
        settings = {"eta": (1.0, eta), "lam": (1.0, 1.0), "strategy": Dense(), "solver": LBFGS(), "max_iter": 3000}
        return Plan(sizes=(4, 3), kernels=(RBF(20.0), RBF(0.02)), center=center, learn_bandwidth=True, **settings)

    @pytest.mark.parametrize("center", [False, True])
    def test_the_energy_never_rises_from_round_to_round(self, monkeypatch, center):
        found = []

        def told(*arguments, **options):
            result = solve(*arguments, **options)
            found.append(result.objective)
            return result

        monkeypatch.setattr("drkm.training.run.solve", told)
        train(X, self.plan(center))
        assert len(found) > 3
        assert all(later <= earlier + 1e-9 * abs(earlier) for earlier, later in itertools.pairwise(found))

    def test_they_end_where_no_bandwidth_lowers_the_energy(self):
        fitted, _ = train(X, self.plan(center=True, eta=3.0))
        assert fitted.result.converged
        slopes = [energy_of(fitted).bandwidth_gradient(fitted.H, layer) for layer in (0, 1)]
        assert max(map(abs, slopes)) < 5e-5 * abs(fitted.result.objective)


class TestStopping:
    """The rounds of learning are one start: what ends a run of the solver ends all of them."""

    def train(self, kernels=GAUSSIANS, **more):
        plan = {"eta": (1.0, 1.0), "lam": (1.0, 1.0), "strategy": Dense(), "solver": LBFGS(), **more}
        return train(X, Plan(sizes=(4, 2), kernels=kernels, learn_bandwidth=True, **plan))[0]

    def test_a_callback_stops_them_all(self):
        told = []
        stopped = self.train(callbacks=[lambda entry: told.append(entry) or len(told) == 3]).result
        assert stopped.status is Status.INTERRUPTED
        assert len(told) == 3

    def test_the_time_limit_is_one_for_all(self, monkeypatch):
        limits = []

        def told(*arguments, **options):
            limits.append(options["max_seconds"] - options["spent"])
            return solve(*arguments, **options)

        monkeypatch.setattr("drkm.training.run.solve", told)
        self.train(max_seconds=1000.0)
        assert len(limits) > 2
        assert all(later < earlier <= 1000.0 for earlier, later in itertools.pairwise(limits))
        limits.clear()
        assert self.train(max_seconds=1e-9).result.status is Status.MAX_SECONDS
        assert len(limits) == 1

    @pytest.mark.parametrize("kernels", [GAUSSIANS, (FeatureMap(network(64), trainable=True), RBF(0.1))])
    def test_an_interruption_between_solves_returns_the_point_they_had(self, monkeypatch, kernels):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(learning, "improve_bandwidths", interrupt)
        fitted = self.train(kernels)
        assert fitted.result.status is Status.INTERRUPTED
        assert fitted.result.stationarity < 0.1
        assert energy_of(fitted).value(fitted.H) == pytest.approx(fitted.result.objective, rel=1e-10)


class TestPenalty:
    def test_learns_the_bandwidths_with_the_codes(self):
        energy = make()
        result = solve(Penalty(inner=30, outer=1, learn_bandwidth=True), energy, starts.kernel_pca(energy))
        assert energy.kernels[0].sigma2 > 20.0
        assert energy.kernels[1].sigma2 != 0.1
        assert energy.value(result.H) == pytest.approx(result.objective, rel=1e-10)

    def test_moves_log_sigma2_by_adams_first_step(self):
        energy = make()
        rate = 1e-3
        H = starts.kernel_pca(energy)
        signs = [energy.bandwidth_gradient(H, layer) for layer in (0, 1)]
        solve(Penalty(inner=1, outer=1, learning_rate=rate, learn_bandwidth=True), energy, H)
        for layer, begin in enumerate([20.0, 0.1]):
            expected = -math.copysign(rate, signs[layer])
            assert math.log(energy.kernels[layer].sigma2 / begin) == pytest.approx(expected, rel=1e-5)

    def test_leaves_them_alone_unless_asked(self):
        energy = make()
        solve(Penalty(inner=5, outer=1), energy, starts.kernel_pca(energy))
        assert energy.kernels == (RBF(20.0), RBF(0.1))

    def test_learns_beside_a_kernel_without_a_bandwidth(self):
        energy = make((RBF(20.0), Polynomial(2, 5.0)))
        solve(Penalty(inner=5, outer=1, learn_bandwidth=True), energy, starts.kernel_pca(energy))
        assert energy.kernels[0].sigma2 > 20.0
        assert energy.kernels[1] == Polynomial(2, 5.0)


def test_a_bandwidth_that_is_learned_to_its_bound_is_pointed_at(tmp_path):
    fitted = ConstrDRKM(3, learn_bandwidth=True).fit(X)
    fitted.save(tmp_path / "model")
    for model in (fitted, load(tmp_path / "model")):
        assert "layer 1 learned sigma2 to its bound" in model.summary()
    for options in ({}, {"learn_bandwidth": True, "center": True}, {"gram": "nystroem"}):
        assert "bound" not in ConstrDRKM(3, **options).fit(X).summary()


@pytest.mark.parametrize("call", [5, 12, 31])
@pytest.mark.parametrize("solver", ["penalty", "auto"])
def test_ctrl_c_while_a_gram_matrix_is_formed_anew_returns_codes_and_kernels_that_belong_together(
    call, solver, monkeypatch
):
    form, calls = Energy.form_first_gram, itertools.count(1)

    def interrupted(energy, given=None):
        if next(calls) == call:
            vars(energy).pop("first")
            raise KeyboardInterrupt
        form(energy, given)

    monkeypatch.setattr(Energy, "form_first_gram", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = ConstrDRKM((4, 2), eta=1.0, solver=solver, learn_bandwidth=True).fit(X)
    assert model.objective_ == pytest.approx(make(model.kernels_).value(model.codes_), rel=1e-10)


def test_ctrl_c_while_bandwidths_are_tried_keeps_those_that_were_there(monkeypatch):
    energy = make()
    H, begin = starts.kernel_pca(energy), bandwidths(energy)
    form, calls = Energy.form_first_gram, itertools.count(1)

    def interrupted(energy, given=None):
        form(energy, given)
        if next(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Energy, "form_first_gram", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learning.improve_bandwidths(energy, H, begin)
    assert bandwidths(energy) == pytest.approx(begin)


@pytest.mark.parametrize("number", [0, 2])
def test_ctrl_c_before_the_solver_of_a_start_returns_the_best_of_the_earlier_starts(number, monkeypatch):
    kernel_pca, calls = starts.kernel_pca, itertools.count()

    def interrupted(energy):
        if next(calls) == number:
            raise KeyboardInterrupt
        return kernel_pca(energy)

    monkeypatch.setattr(starts, "kernel_pca", interrupted)
    model = ConstrDRKM((4, 2), n_init=4, random_state=0)
    if number == 0:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    else:
        model.fit(X)
        monkeypatch.undo()
        assert model.objective_ == ConstrDRKM((4, 2), n_init=number, random_state=0).fit(X).objective_
