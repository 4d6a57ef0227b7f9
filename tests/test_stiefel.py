from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pymanopt.manifolds import Stiefel

from dense_oracle import dense_energy, draw, orthonormal
from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from versions import skip_before

LAWS = settings(max_examples=40, deadline=None, derandomize=True, database=None)
TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-6}
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def infeasibility(H: torch.Tensor) -> float:
    """Return ‖HᵀH - I‖ in float64, whatever the precision of H."""
    H = H.double()
    return torch.linalg.norm(H.T @ H - torch.eye(H.shape[1]).double()).item()


def conditioned(n: int, s: int, condition: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix of that condition number and its polar factor."""
    U, V = orthonormal(n, s, seed=1), orthonormal(s, s, seed=2)
    return (U * torch.logspace(0, -math.log10(condition), s).double()) @ V.T, U @ V.T


@st.composite
def points(draw_):
    s = draw_(st.integers(1, 6))
    n = draw_(st.integers(s, 40))
    seed = draw_(st.integers(0, 10**6))
    return orthonormal(n, s, seed=seed), draw(n, s, seed=seed + 1), draw(n, s, seed=seed + 2)


class TestProjection:
    @LAWS
    @given(points())
    def test_agrees_with_pymanopt(self, point):
        H, Z, _ = point
        if H.shape[0] == H.shape[1] == 1:
            return
        expected = Stiefel(*H.shape).projection(H.numpy(), Z.numpy())
        np.testing.assert_allclose(stiefel.projection(H, Z).numpy(), expected, atol=1e-12)

    @LAWS
    @given(points())
    def test_gives_a_tangent_vector(self, point):
        H, Z, _ = point
        skew = H.T @ stiefel.projection(H, Z)
        assert (skew + skew.T).abs().max() < 1e-12

    @LAWS
    @given(points())
    def test_is_idempotent(self, point):
        H, Z, _ = point
        once = stiefel.projection(H, Z)
        torch.testing.assert_close(stiefel.projection(H, once), once, rtol=0, atol=1e-12)

    @LAWS
    @given(points())
    def test_is_self_adjoint(self, point):
        H, Y, Z = point
        left, right = (stiefel.projection(H, Y) * Z).sum(), (Y * stiefel.projection(H, Z)).sum()
        assert left.item() == pytest.approx(right.item(), abs=1e-11)


class TestRetraction:
    @DTYPES
    @pytest.mark.parametrize("length", [1e-8, 1e-2, 1.0, 3.0])
    @pytest.mark.parametrize("n", [15, 40, 400, 3000])
    def test_the_point_stays_on_the_manifold(self, n, length, dtype):
        H = orthonormal(n, 15).to(dtype)
        Z = stiefel.projection(H, draw(n, 15, seed=1).to(dtype))
        assert infeasibility(stiefel.retraction(H, length / Z.norm() * Z)) <= TOLERANCE[dtype]

    @DTYPES
    def test_the_point_stays_on_the_manifold_over_a_thousand_steps(self, dtype):
        H = orthonormal(60, 5).to(dtype)
        generator = torch.Generator().manual_seed(0)
        for _ in range(1000):
            Z = stiefel.projection(H, torch.randn(60, 5, generator=generator, dtype=dtype))
            H = stiefel.retraction(H, 0.3 * Z / Z.norm())
        assert infeasibility(H) <= TOLERANCE[dtype]

    @LAWS
    @given(points())
    def test_agrees_with_pymanopts_polar_retraction(self, point):
        H, Z, _ = point
        if H.shape[0] == H.shape[1] == 1:
            return
        Z = stiefel.projection(H, Z)
        expected = Stiefel(*H.shape, retraction="polar").retraction(H.numpy(), Z.numpy())
        np.testing.assert_allclose(stiefel.retraction(H, Z).numpy(), expected, atol=1e-11)

    def test_a_zero_step_stays(self):
        H = orthonormal(30, 4)
        torch.testing.assert_close(stiefel.retraction(H, torch.zeros_like(H)), H, rtol=0, atol=1e-14)

    # In earlier versions expm, of which pymanopt makes geodesics, refuses read-only arrays.
    @pytest.mark.skipif(**skip_before("scipy", "1.12"))
    def test_agrees_with_the_geodesic_to_second_order(self):
        H = orthonormal(30, 4)
        Z = stiefel.projection(H, draw(30, 4, seed=1))
        Z = Z / Z.norm()
        geodesic = Stiefel(30, 4).exp

        def error(t: float) -> float:
            return np.linalg.norm(stiefel.retraction(H, t * Z).numpy() - geodesic(H.numpy(), t * Z.numpy()))

        assert math.log2(error(0.1) / error(0.05)) == pytest.approx(3.0, abs=0.1)
        assert math.log2(error(0.05) / error(0.025)) == pytest.approx(3.0, abs=0.1)


class TestPolar:
    @DTYPES
    @pytest.mark.parametrize("condition", [1.0, 3.0])
    def test_of_well_conditioned_columns_is_on_the_manifold(self, condition, dtype):
        Y, expected = conditioned(200, 8, condition)
        found = stiefel.polar(Y.to(dtype))
        assert found.dtype == dtype
        assert infeasibility(found) <= TOLERANCE[dtype]
        assert (found.double() - expected).norm() <= 10 * TOLERANCE[dtype]

    @pytest.mark.parametrize("condition", [10.0, 30.0, 100.0, 300.0, 900.0, 1100.0, 1e5, 1e8])
    @DTYPES
    def test_of_nearly_dependent_columns_is_on_the_manifold(self, condition, dtype):
        Y, _ = conditioned(200, 8, condition)
        assert infeasibility(stiefel.polar(Y.to(dtype))) <= TOLERANCE[dtype]

    @pytest.mark.parametrize("condition", [10.0, 100.0, 900.0, 1100.0, 1e5])
    def test_of_nearly_dependent_columns_is_the_polar_factor(self, condition):
        Y, expected = conditioned(200, 8, condition)
        assert (stiefel.polar(Y) - expected).norm() <= 1e-13 * condition

    @pytest.mark.parametrize("columns", [[0, 0, 1, 2], [0, 1, 1, 1]])
    def test_of_dependent_columns_is_on_the_manifold(self, columns):
        assert infeasibility(stiefel.polar(draw(50, 3)[:, columns])) <= 1e-13

    def test_of_columns_of_very_different_lengths_is_on_the_manifold(self):
        assert infeasibility(stiefel.polar(draw(50, 3) * torch.tensor([1e8, 1.0, 1e-8]).double())) <= 1e-13

    def test_is_the_nearest_point_of_the_manifold(self):
        Y = draw(40, 4)
        nearest = (stiefel.polar(Y) - Y).norm()
        for seed in range(20):
            other = stiefel.polar(stiefel.polar(Y) + 0.1 * draw(40, 4, seed=seed + 1))
            assert (other - Y).norm() > nearest


class TestCurvature:
    def problem(self):
        X = draw(25, 3, seed=5)
        kernels, sizes, eta = [RBF(2.0), RBF(0.3)], (3, 2), (1.0, 0.6)
        return Energy(X, kernels, sizes, eta, Dense()), dense_energy(X, kernels, sizes, eta), orthonormal(25, 5)

    def gradient(self, energy: Energy, H: torch.Tensor) -> torch.Tensor:
        return stiefel.projection(H, energy.value_and_gradient(H).gradient)

    def multipliers(self, energy: Energy, H: torch.Tensor) -> torch.Tensor:
        return stiefel.multipliers(H, energy.value_and_gradient(H).gradient)

    def test_hessian_is_the_projected_difference_of_riemannian_gradients(self):
        energy, _, H = self.problem()
        Z, h = stiefel.projection(H, draw(25, 5, seed=1)), 1e-5
        up, down = (self.gradient(energy, stiefel.retraction(H, t * Z)) for t in (h, -h))
        expected = stiefel.projection(H, (up - down) / (2 * h))
        found = stiefel.hessian(H, self.multipliers(energy, H), Z, energy.hessian(H)(Z))
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)

    def test_hessian_agrees_with_pymanopt(self):
        energy, _, H = self.problem()
        Z = stiefel.projection(H, draw(25, 5, seed=1))
        G, euclidean = energy.value_and_gradient(H).gradient, energy.hessian(H)(Z)
        expected = Stiefel(25, 5).euclidean_to_riemannian_hessian(H.numpy(), G.numpy(), euclidean.numpy(), Z.numpy())
        found = stiefel.hessian(H, stiefel.multipliers(H, G), Z, euclidean)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-10)

    def test_hessian_is_symmetric_on_tangent_vectors(self):
        energy, _, H = self.problem()
        Y, Z = (stiefel.projection(H, draw(25, 5, seed=seed)) for seed in (1, 2))
        Lambda, hessian = self.multipliers(energy, H), energy.hessian(H)
        left = (Y * stiefel.hessian(H, Lambda, Z, hessian(Z))).sum().item()
        assert left == pytest.approx((Z * stiefel.hessian(H, Lambda, Y, hessian(Y))).sum().item(), rel=1e-10)

    def test_energy_along_the_retraction_has_the_hessian_as_second_derivative(self):
        energy, J, H = self.problem()
        Z = stiefel.projection(H, draw(25, 5, seed=1))
        Z, h = Z / Z.norm(), 1e-3
        up, middle, down = (J(stiefel.retraction(H, t * Z)).item() for t in (h, 0.0, -h))
        found = (Z * stiefel.hessian(H, self.multipliers(energy, H), Z, energy.hessian(H)(Z))).sum().item()
        assert found == pytest.approx((up - 2 * middle + down) / h**2, rel=1e-4)


class TestMeasures:
    def test_multipliers_are_symmetric_and_in_float64(self):
        found = stiefel.multipliers(orthonormal(20, 3).float(), draw(20, 3).float())
        assert found.dtype == torch.float64
        assert torch.equal(found, found.T)

    def test_feasibility_is_the_distance_of_the_gram_matrix_to_the_identity(self):
        H = draw(20, 3)
        assert stiefel.feasibility(H) == pytest.approx(infeasibility(H))

    def test_stationarity_is_zero_where_the_gradient_is_normal(self):
        H = orthonormal(20, 3)
        assert stiefel.stationarity(H, H @ stiefel.symmetric(draw(3, 3))) < 1e-15
        assert stiefel.stationarity(H, torch.zeros_like(H)) == 0.0

    @DTYPES
    def test_a_gradient_whose_squares_underflow_or_overflow_is_never_called_stationary(self, dtype):
        Q = orthonormal(20, 6).to(dtype)
        limits = torch.finfo(dtype)
        for size in (1e-3 * math.sqrt(limits.tiny * limits.eps), 1e6 * math.sqrt(limits.max)):
            assert math.isnan(stiefel.stationarity(Q[:, :3], size * Q[:, 3:]))

    def test_stationarity_is_one_for_a_gradient_away_from_the_codes(self):
        Q = orthonormal(20, 6)
        assert stiefel.stationarity(Q[:, :3], Q[:, 3:]) == pytest.approx(1.0)
