from __future__ import annotations

import numpy as np
import pytest
import torch
from solver_suite import N, Recorder, Replay, X, make_energy

from dense_oracle import dense_energy, draw, orthonormal, structured
from drkm import ConstrDRKM
from drkm.kernels import RBF
from drkm.problem import stiefel
from drkm.solvers import Penalty, Status, solve
from drkm.training import starts

KERNELS, SIZES, ETA, LAM = [RBF(20.0), RBF(0.2)], (4, 2), (0.7, 1.6), (1.3, 0.4)


def energy():
    made = make_energy(SIZES, (20.0, 0.2))
    made.eta = ETA
    return made


def transcription(H, *, rate, mu, tau, growth, inner, outer):
    """Algorithm 1 of the paper, line by line: Adam anew in every round, warm start, τ halved, μ times p."""
    J = dense_energy(X, KERNELS, SIZES, ETA)
    H = H.clone().requires_grad_()

    def Q():
        total = J(H)
        for block, lam in zip(H.split(list(SIZES), dim=1), LAM, strict=True):
            total = total + lam / 2 * torch.trace(block.T @ block)
        return total + mu / 2 * (H.T @ H - torch.eye(sum(SIZES)).double()).square().sum()

    for _ in range(outer):
        adam = torch.optim.Adam([H], lr=rate)
        for _ in range(inner):
            adam.zero_grad()
            Q().backward()
            adam.step()
            (gradient,) = torch.autograd.grad(Q(), H)
            if gradient.norm() <= tau:
                break
        tau, mu = tau / 2, growth * mu
    return H.detach()


@pytest.mark.parametrize("kind", ["kpca", "random"])
@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 1e-3, "mu": 1.0, "tau": 0.1, "growth": 8.0, "inner": 40, "outer": 1},
        {"rate": 1e-3, "mu": 1.0, "tau": 0.1, "growth": 8.0, "inner": 20, "outer": 3},
        {"rate": 3e-2, "mu": 5.0, "tau": 30.0, "growth": 2.0, "inner": 40, "outer": 2},
    ],
    ids=["one round", "three rounds", "rounds that end by their tolerance"],
)
def test_equals_a_transcription_of_algorithm_1(settings, kind):
    problem = energy()
    H = starts.kernel_pca(problem)
    if kind == "random":
        H = starts.random(problem, torch.Generator().manual_seed(0))
    expected = transcription(H, **settings)
    solver = Penalty(
        lam=LAM,
        learning_rate=settings["rate"],
        **{name: settings[name] for name in ("mu", "tau", "growth", "inner", "outer")},
    )
    found = solve(solver, problem, H).H
    assert (found - H).norm() > 1e-3
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_has_the_published_defaults():
    solver = Penalty()
    assert (solver.learning_rate, solver.mu, solver.tau, solver.growth, solver.inner) == (1e-3, 1.0, 0.1, 8.0, 500)
    assert [solver.rounds(n) for n in (50, 100, 101, 200, 201, 5000)] == [2, 2, 4, 4, 7, 7]


def test_takes_lam_and_learning_from_the_model():
    given = Penalty(inner=7)
    solver = given.of_model((2.0, 3.0), True)
    assert (solver.lam, solver.learn_bandwidth, solver.inner) == ((2.0, 3.0), True, 7)
    assert given == Penalty(inner=7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_object_in_a_model_does_what_the_name_does():
    def fitted(solver):
        model = ConstrDRKM((3, 2), lam=(40.0, 0.5), learn_bandwidth=True, solver=solver)
        return model.fit(draw(60, 3).numpy())

    named, given = fitted("penalty"), fitted(Penalty(inner=500))
    np.testing.assert_array_equal(named.codes_, given.codes_)
    assert [kernel.sigma2 for kernel in named.kernels_] == [kernel.sigma2 for kernel in given.kernels_]


@pytest.mark.parametrize(
    ("own", "lam", "learn"),
    [({"lam": 2}, (2.0, 2.0), False), ({"lam": [1, 3]}, (1.0, 3.0), True), ({"learn_bandwidth": True}, (1.0,), True)],
)
def test_own_settings_that_agree_with_the_model_are_welcome(own, lam, learn):
    solver = Penalty(**own).of_model(lam, learn)
    assert (solver.lam, solver.learn_bandwidth) == (lam, learn)


def test_begins_where_it_is_told_even_off_the_manifold():
    problem = energy()
    H = 3.0 * orthonormal(N, 6)
    first = solve(Penalty(inner=1, outer=1), problem, H).history[0]
    assert first["objective"] == pytest.approx(problem.value(H), rel=1e-12)
    assert first["feasibility"] == pytest.approx(stiefel.feasibility(H), rel=1e-12)


def test_runs_its_whole_schedule_whatever_max_iter_says():
    problem = energy()
    result = solve(Penalty(inner=10, outer=2), problem, starts.kernel_pca(problem), max_iter=3)
    assert result.status is Status.SCHEDULE_ENDED
    assert result.n_iter > 20


def test_max_seconds_and_ctrl_c_end_the_run():
    problem = energy()
    H = starts.kernel_pca(problem)
    assert solve(Penalty(), problem, H, max_seconds=1e-9).status is Status.MAX_SECONDS

    def interrupt(entry):
        if entry["iteration"] == 5:
            raise KeyboardInterrupt

    result = solve(Penalty(), problem, H, callbacks=[interrupt])
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 5


@pytest.mark.parametrize("learn", [False, True])
def test_resuming_after_any_iteration_ends_in_the_same_bits(learn):
    def run(journal):
        problem = energy()
        solver = Penalty(inner=8, outer=2, learn_bandwidth=learn)
        return solve(solver, problem, starts.kernel_pca(problem), journal=journal), problem

    recorder = Recorder()
    result, problem = run(recorder)
    for k in (0, 1, 7, 8, 9, 12, len(recorder.states) - 1):
        again, resumed = run(Replay(recorder.states[k]))
        assert torch.equal(again.H, result.H)
        assert again.n_iter == result.n_iter
        assert resumed.kernels == problem.kernels


def test_two_runs_agree_in_every_bit():
    runs = [solve(Penalty(inner=20, outer=2), energy(), orthonormal(N, 6)).H for _ in range(2)]
    assert torch.equal(*runs)


@pytest.mark.slow
class TestAsPublished:
    """Structured set, n = 400, s = (10, 5), σ² = (50, 50): the optimum of the constrained problem is -248.358."""

    OPTIMUM = -248.358

    def run(self, kind):
        problem = make_energy((10, 5), (50.0, 50.0), points=structured(400))
        H = starts.kernel_pca(problem)
        if kind == "random":
            H = starts.random(problem, torch.Generator().manual_seed(0))
        return solve(Penalty(), problem, H)

    def test_fails_from_a_random_start(self):
        result = self.run("random")
        assert not result.converged
        assert result.objective > 0.2 * self.OPTIMUM
        assert result.feasibility > 0.1

    def test_comes_within_three_percent_from_kernel_pca(self):
        result = self.run("kpca")
        assert abs(result.objective / self.OPTIMUM - 1) < 0.03
        # J is too low off the manifold; the nearest feasible point must be as good.
        problem = make_energy((10, 5), (50.0, 50.0), points=structured(400))
        assert problem.value(stiefel.polar(result.H)) < 0.97 * self.OPTIMUM
