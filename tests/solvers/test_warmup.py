"""The parts around the iterations: warm-up, preconditioner and line search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from solver_suite import N, make_energy

from dense_oracle import draw, orthonormal, structured
from drkm.problem import stiefel
from drkm.solvers import LBFGS, solve
from drkm.solvers.coarse import coarse_step
from drkm.solvers.lbfgs import two_loop, with_pair
from drkm.solvers.line_search import SUFFICIENT, backtrack
from drkm.solvers.preconditioner import row_preconditioner
from drkm.solvers.trust_region import truncated_cg
from drkm.solvers.warmup import warm_up
from drkm.training import starts
from few_digits import X


class TestCoarseStep:
    def test_where_deep_kernels_barely_move_it_is_almost_the_optimum(self):
        energy = make_energy((10, 5), (50.0, 50.0), points=structured(200))
        H = starts.kernel_pca(energy)
        moved = coarse_step(energy, H, energy.value_and_gradient(H).gradient)
        assert stiefel.feasibility(moved) < 1e-12
        assert energy.value(moved) < energy.value(H)
        assert energy.value(moved) == pytest.approx(-126.379, rel=1e-3)

    def test_is_none_where_the_subspace_is_everything(self):
        energy = make_energy((4, 2), (20.0, 0.1), points=structured(12))
        H = orthonormal(12, 6)
        assert coarse_step(energy, H, energy.value_and_gradient(H).gradient) is None


class TestWarmUp:
    def minimise(self, energy, H, tol, max_iter):
        return solve(LBFGS(warmup=False), energy, H, tol=tol, max_iter=max_iter).H

    def test_one_layer_and_near_optimal_starts_are_left_alone(self):
        one = make_energy((4,), (20.0,))
        H = orthonormal(N, 4)
        assert warm_up(one, H, self.minimise) is H
        two = make_energy()
        best = solve(LBFGS(), two, starts.kernel_pca(two)).H
        assert warm_up(two, best, self.minimise) is best

    def test_a_coarse_step_that_raises_the_energy_is_not_taken(self, monkeypatch):
        energy = make_energy((4, 2), (20.0, 1.0))
        H = starts.kernel_pca(energy)
        monkeypatch.setattr("drkm.solvers.warmup.coarse_step", lambda *_: orthonormal(N, 6))
        assert warm_up(energy, H, self.minimise) is H

    @pytest.mark.parametrize("sigma2", [1.0, 0.02], ids=["coarse steps", "continuation"])
    @pytest.mark.parametrize("center", [False, True])
    def test_begins_lower_and_on_the_manifold(self, sigma2, center):
        energy = make_energy((4, 2), (20.0, sigma2), center)
        H = starts.kernel_pca(energy)
        warm = warm_up(energy, H, self.minimise)
        assert stiefel.feasibility(warm) < 1e-12
        # Centring leaves a wide kernel almost no energy: kernel PCA is already near the optimum.
        if center and sigma2 == 1.0:
            assert warm is H
        else:
            assert energy.value(warm) < energy.value(H)

    def test_a_kernel_that_is_neither_wide_nor_narrow_is_left_alone(self):
        energy = make_energy((4, 2), (20.0, 2 * 8 / N))
        H = starts.kernel_pca(energy)
        assert warm_up(energy, H, self.minimise) is H

    def test_a_run_that_is_late_cuts_it_short(self):
        energy = make_energy((4, 2), (20.0, 0.02))
        H = starts.kernel_pca(energy)
        before = energy.count.evaluations
        LBFGS().prepare(energy, H, lambda: True)
        assert energy.count.evaluations - before < 5


class TestPreconditioner:
    @pytest.mark.parametrize("deep_eta", [1.0, 10.0])
    @pytest.mark.parametrize("sizes", [(4,), (4, 2), (3, 2, 2)])
    def test_is_symmetric_and_positive_definite(self, sizes, deep_eta):
        energy = make_energy(sizes, (20.0, 0.13, 0.2)[: len(sizes)])
        energy.eta = (1.0, deep_eta, deep_eta**2)[: len(sizes)]
        H = orthonormal(N, sum(sizes))
        evaluation = energy.value_and_gradient(H)
        multipliers = stiefel.multipliers(H, evaluation.gradient)
        made = row_preconditioner(energy, multipliers, evaluation.curvature, H.dtype)
        Y, Z = (stiefel.projection(H, draw(N, sum(sizes), seed=seed)) for seed in (1, 2))

        def apply(Z):
            return made.apply(Z, H)

        assert (Y * apply(Z)).sum().item() == pytest.approx((Z * apply(Y)).sum().item(), rel=1e-9)
        assert (Z * apply(Z)).sum() > 0
        torch.testing.assert_close(apply(Y + 2 * Z), apply(Y) + 2 * apply(Z))

    def test_inverts_the_multipliers_and_the_weight_of_every_row(self):
        energy = make_energy()
        H = solve(LBFGS(), energy, starts.kernel_pca(energy)).H
        evaluation = energy.value_and_gradient(H)
        M = -stiefel.multipliers(H, evaluation.gradient)
        values, vectors = torch.linalg.eigh(M)
        floor = 0.1 * values.abs().mean()
        M = (vectors * values.abs().clamp_min(floor)) @ vectors.T
        E = torch.diag(torch.tensor([1.0] * 4 + [0.0] * 2).double())
        Z = draw(N, 6)
        multipliers = stiefel.multipliers(H, evaluation.gradient)
        found = row_preconditioner(energy, multipliers, evaluation.curvature, H.dtype).apply(Z, H)
        for i, weight in enumerate(evaluation.curvature[0].clamp_min(0)):
            torch.testing.assert_close(found[i], torch.linalg.solve(M + weight * E, Z[i]), rtol=1e-8, atol=1e-10)

    def test_inverts_the_projected_multipliers_where_weights_differ(self):
        energy = make_energy()
        energy.eta = (1.0, 20.0)
        H = orthonormal(N, 6)
        Z = stiefel.projection(H, draw(N, 6))
        # Without rotations inside a layer, on which the energy does not depend.
        turn = H.T @ Z
        turn[:4, 4:], turn[4:, :4] = 0.0, 0.0
        Z = Z - H @ turn
        M = torch.diag(torch.tensor([3.0, 2.0, 1.5, 1.0, 2.0 / 20, 1.0 / 20]).double())
        found = row_preconditioner(energy, -M, [None], H.dtype).apply(stiefel.projection(H, Z @ M), H)
        torch.testing.assert_close(found, Z, rtol=1e-8, atol=1e-10)

    def test_light_deep_layer_takes_fewer_iterations_than_equal_weights(self):
        """A projected row preconditioner would take ten times as many."""
        used = {}
        for deep_eta in (1.0, 20.0):
            energy = make_energy((10, 5), (5.0, 0.2), points=torch.from_numpy(X))
            energy.eta = (1.0, deep_eta)
            used[deep_eta] = solve(LBFGS(), energy, starts.kernel_pca(energy)).n_iter
        assert used[20.0] < used[1.0]


class TestLineSearch:
    def test_finds_a_point_that_lowers_the_energy_enough(self):
        energy = make_energy()
        H = orthonormal(N, 6)
        value, G, _ = energy.value_and_gradient(H)
        direction = -stiefel.projection(H, G)
        slope = (direction * G).sum().item()
        trial, evaluation = backtrack(energy, H, direction, value, slope, 1e3)
        assert stiefel.feasibility(trial) < 1e-12
        assert evaluation.value < value
        assert evaluation.value == pytest.approx(energy.value(trial), rel=1e-12)

    def test_gives_up_on_a_direction_that_leads_up(self):
        energy = make_energy()
        H = orthonormal(N, 6)
        value, G, _ = energy.value_and_gradient(H)
        uphill = stiefel.projection(H, G)
        # A slope that promises descent where there is none.
        assert backtrack(energy, H, uphill, value, -1e9 / SUFFICIENT, 1.0) is None

    def test_lets_gradients_decide_where_rounding_hides_the_decrease(self):
        energy = make_energy()
        H = solve(LBFGS(), energy, orthonormal(N, 6), tol=1e-7).H
        value, G, _ = energy.value_and_gradient(H)
        R = stiefel.projection(H, G)
        slope, size = -(R * G).sum().item(), stiefel.norm(R)
        # An energy that rounding made too low, so that no other point can be lower.
        low = value - 20 * torch.finfo(H.dtype).eps * abs(value)
        length = 0.1 * stiefel.norm(H) / stiefel.norm(G)
        trial, evaluation = backtrack(energy, H, -R, low, slope, length, size)
        assert stiefel.norm(stiefel.projection(trial, evaluation.gradient)) < size
        # Along R the gradient grows, and the increase of the energy is more than rounding.
        assert backtrack(energy, H, R, low, slope, length, size) is None
        assert backtrack(energy, H, -R, low * (1 + 1e-12), slope, length, size) is None


class TestInnerSolvers:
    def matrix(self, low=0.5):
        Q = orthonormal(12, 12)
        return (Q * torch.linspace(low, 9.0, 12).double()) @ Q.T

    def test_two_loops_equal_the_dense_bfgs_update(self):
        S = [draw(12, seed=k) for k in range(4)]
        Y = [self.matrix() @ s for s in S]
        scale = torch.dot(S[-1], Y[-1]) / torch.dot(Y[-1], Y[-1])
        dense = scale * torch.eye(12).double()
        for s, y in zip(S, Y, strict=True):
            rho = 1 / torch.dot(s, y)
            V = torch.eye(12).double() - rho * torch.outer(y, s)
            dense = V.T @ dense @ V + rho * torch.outer(s, s)
        R = draw(12, seed=9)
        kept: tuple[list, list] = ([], [])
        for s, y in zip(S, Y, strict=True):
            kept = with_pair(*kept, s, y, 1e-10, memory=4)
        torch.testing.assert_close(two_loop(R, *kept, lambda Z: Z), dense @ R)
        torch.testing.assert_close(two_loop(Y[-1], *kept, lambda Z: Z), S[-1])

    def test_pairs_are_scaled_the_oldest_go_and_flat_ones_are_left_out(self):
        kept: tuple[list, list] = ([], [])
        for k in range(3):
            s = draw(4, 3, seed=k)
            kept = with_pair(*kept, s, (k + 1) * s, 1e-10, memory=2)
        assert [len(pairs) for pairs in kept] == [2, 2]
        torch.testing.assert_close(kept[0][-1] * 3, kept[1][-1])
        assert [torch.dot(s, y).item() for s, y in zip(*kept, strict=True)] == pytest.approx([1, 1])
        assert with_pair(*kept, s, -s, 1e-10, memory=2) == kept

    def test_truncated_cg_solves_a_convex_model_inside_the_region(self):
        M, R = self.matrix(), draw(12, 1, seed=3)
        Z, decrease, outside = truncated_cg(lambda Z: M @ Z, lambda Z: Z, R, 1e3, 1e-12, 100)
        torch.testing.assert_close(Z, -torch.linalg.solve(M, R))
        assert decrease == pytest.approx((0.5 * R.T @ torch.linalg.solve(M, R)).item())
        assert not outside

    def test_truncated_cg_ends_where_squares_vanish_in_single_precision(self):
        R = torch.full((12, 1), 1e-18)
        Z, decrease, outside = truncated_cg(lambda Z: 1e30 * Z, lambda Z: 1e-15 * Z, R, 1.0, 0.0, 100)
        assert (Z.norm().item(), decrease, outside) == (0.0, 0.0, False)

    @pytest.mark.parametrize("low", [0.5, -2.0])
    def test_truncated_cg_stops_at_the_boundary(self, low):
        M, R = self.matrix(low), draw(12, 1, seed=3)
        Z, decrease, outside = truncated_cg(lambda Z: M @ Z, lambda Z: Z, R, 0.05, 1e-12, 100)
        assert outside
        assert np.linalg.norm(Z.numpy()) == pytest.approx(0.05, rel=1e-10)
        cauchy = 0.05 * R.norm() - 0.5 * 0.05**2 * (R.T @ M @ R / R.norm() ** 2)
        assert decrease >= cauchy.item() * (1 - 1e-10)
