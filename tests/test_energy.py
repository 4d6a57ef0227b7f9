from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dense_oracle import dense_energy, draw, network, orthonormal, structured, waves
from drkm.gram import Dense
from drkm.kernels import RBF, Cosine, FeatureMap, Laplacian, Linear, Matern, Polynomial, Precomputed
from drkm.problem import stiefel
from drkm.problem.energy import Energy
from drkm.solvers import LBFGS, solve
from drkm.training import starts

N = 31
X = draw(N, 4)
FIRST = [RBF(3.0), Laplacian(3.0), Matern(1.5, 3.0), Polynomial(2, 0.3), Linear(), Cosine()]
DEEP = [RBF(0.2), Laplacian(0.2), Matern(1.5, 0.2), Matern(2.5, 0.2), Polynomial(3, 5.0, 0.5), Cosine()]
DEEP += [FeatureMap(waves), FeatureMap(network())]
STACKS = [((3,), (0.7,)), ((3, 2), (1.3, 0.4)), ((3, 2, 2), (0.5, 2.0, 1.1))]
SMOOTH = [RBF(0.2), Matern(2.5, 0.4), Polynomial(2, 5.0, 0.5)]


def name(value) -> str:
    return value.describe() if hasattr(value, "describe") else str(value)


def make(sizes, eta, center=False, first=None, deep=None):
    kernels = [first or RBF(3.0), *[deep or RBF(0.2)] * (len(sizes) - 1)]
    if isinstance(deep, FeatureMap) and isinstance(deep.map, torch.nn.Module) and len(sizes) > 2:
        kernels[2] = FeatureMap(network(sizes[1]))
    return Energy(X, kernels, sizes, eta, Dense(), center), dense_energy(X, kernels, sizes, eta, center)


class TestAgainstTheDenseFormula:
    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize(("sizes", "eta"), STACKS)
    @pytest.mark.parametrize("first", FIRST, ids=name)
    def test_value_is_that_of_the_formula_for_every_first_kernel(self, first, sizes, eta, center):
        energy, J = make(sizes, eta, center, first)
        H = orthonormal(N, sum(sizes))
        assert energy.value(H) == pytest.approx(J(H).item(), rel=1e-11)
        assert energy.value_and_gradient(H).value == pytest.approx(J(H).item(), rel=1e-11)

    @pytest.mark.parametrize("on_manifold", [True, False])
    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize(("sizes", "eta"), STACKS[1:])
    @pytest.mark.parametrize("deep", DEEP, ids=name)
    def test_value_gradient_and_hessian_are_those_of_the_formula(self, deep, sizes, eta, center, on_manifold):
        energy, J = make(sizes, eta, center, deep=deep)
        S = sum(sizes)
        H = orthonormal(N, S) if on_manifold else 0.4 * draw(N, S, seed=5)
        Z = draw(N, S, seed=6)
        value, G, _ = energy.value_and_gradient(H)
        H_ = H.clone().requires_grad_()
        (expected,) = torch.autograd.grad(J(H_), H_, create_graph=True)
        (product,) = torch.autograd.grad((expected * Z).sum(), H_)
        assert value == pytest.approx(J(H).item(), rel=1e-10)
        torch.testing.assert_close(G, expected.detach(), rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(energy.hessian(H)(Z), product, rtol=1e-7, atol=1e-8)

    def test_the_gradient_for_the_rbf_kernel_is_the_closed_form_of_its_docstring(self):
        sizes, eta, sigma2 = (3, 2), (1.3, 0.4), 0.2
        energy, _ = make(sizes, eta, deep=RBF(sigma2))
        H = orthonormal(N, 5)
        H1, H2 = energy.split(H)
        K1, K2 = RBF(3.0)(X, X), RBF(sigma2)(H1, H1)
        W = K2 * (H2 @ H2.T)
        first = -K1 @ H1 / eta[0] + (torch.diag(W.sum(dim=1)) - W) @ H1 / (sigma2 * eta[1])
        expected = torch.cat([first, -K2 @ H2 / eta[1]], dim=1)
        torch.testing.assert_close(energy.value_and_gradient(H).gradient, expected, rtol=1e-10, atol=1e-12)

    def test_layer_values_add_up_to_the_value(self):
        energy, _ = make((3, 2, 2), (0.5, 2.0, 1.1))
        H = orthonormal(N, 7)
        assert len(energy.layer_values(H)) == 3
        assert sum(energy.layer_values(H)) == pytest.approx(energy.value(H), rel=1e-14)

    def test_a_precomputed_gram_matrix_gives_the_value_of_its_kernel(self):
        H = orthonormal(N, 5)
        K = RBF(3.0)(X, X)
        for center in (False, True):
            given = Energy(K, [Precomputed(), RBF(0.2)], (3, 2), (1.0, 1.0), Dense(), center)
            assert given.value(H) == pytest.approx(make((3, 2), (1.0, 1.0), center)[0].value(H), rel=1e-12)

    def test_a_linear_deep_layer_has_no_energy_on_the_manifold(self):
        energy, _ = make((3, 2), (1.0, 1.0), deep=Linear())
        assert abs(energy.layer_values(orthonormal(N, 5))[1]) < 1e-14

    @pytest.mark.parametrize("center", [False, True])
    def test_float32_agrees_with_float64(self, center):
        sizes, eta = (3, 2), (1.0, 1.0)
        double, _ = make(sizes, eta, center)
        single = Energy(X.float(), double.kernels, sizes, eta, Dense(), center)
        H, Z = orthonormal(N, 5), draw(N, 5, seed=6)
        value, G, _ = single.value_and_gradient(H.float())
        assert value == pytest.approx(double.value(H), rel=1e-5)
        assert (G.double() - double.value_and_gradient(H).gradient).norm() <= 1e-5 * G.norm()
        exact = double.hessian(H)(Z)
        assert (single.hessian(H.float())(Z.float()).double() - exact).norm() <= 1e-5 * exact.norm()

    @pytest.mark.parametrize("layer", [0, 1])
    @pytest.mark.parametrize("center", [False, True])
    def test_bandwidth_gradient_is_the_limit_of_differences(self, layer, center):
        H, h = orthonormal(N, 5), 1e-5

        def J(log: float) -> float:
            kernels = [RBF(3.0), Matern(2.5, 0.2)]
            kernels[layer] = kernels[layer].with_parameters(sigma2=kernels[layer].sigma2 * math.exp(log))
            return Energy(X, kernels, (3, 2), (0.8, 1.7), Dense(), center).value(H)

        energy, _ = make((3, 2), (0.8, 1.7), center, deep=Matern(2.5, 0.2))
        assert energy.bandwidth_gradient(H, layer) == pytest.approx((J(h) - J(-h)) / (2 * h), rel=1e-6, abs=1e-9)


def slope_of(remainder, lengths) -> float:
    """Return the smallest slope of log remainder against log length between neighbours."""
    r = [remainder(t) for t in lengths]
    return min(math.log(a / b) / math.log(s / t) for a, b, s, t in zip(r, r[1:], lengths, lengths[1:], strict=False))


@st.composite
def problems(draw_):
    sizes = tuple(draw_(st.lists(st.integers(1, 3), min_size=2, max_size=3)))
    eta = tuple(draw_(st.floats(0.2, 5.0)) for _ in sizes)
    kernels = [RBF(3.0), *(draw_(st.sampled_from(SMOOTH)) for _ in sizes[1:])]
    energy = Energy(X, kernels, sizes, eta, Dense(), draw_(st.booleans()))
    seed = draw_(st.integers(0, 10**6))
    directions = draw(4, N, sum(sizes), seed=seed + 1)
    return energy, orthonormal(N, sum(sizes), seed=seed), directions / directions[0].norm()


class TestTaylor:
    """Remainders are those of four directions together, so that one flat direction does not spoil the order."""

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(problems())
    def test_the_gradient_leaves_a_remainder_of_second_order(self, problem):
        energy, H, directions = problem
        value, G, _ = energy.value_and_gradient(H)

        def remainder(t: float) -> float:
            return math.hypot(*(energy.value(H + t * Z) - value - t * (G * Z).sum().item() for Z in directions))

        assert slope_of(remainder, [2.0**-k for k in (6, 7, 8)]) == pytest.approx(2.0, abs=0.1)

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(problems())
    def test_the_hessian_leaves_a_remainder_of_third_order(self, problem):
        energy, H, directions = problem
        value, G, _ = energy.value_and_gradient(H)
        hessian = energy.hessian(H)
        models = [((G * Z).sum().item(), 0.5 * (Z * hessian(Z)).sum().item()) for Z in directions]

        def remainder(t: float) -> float:
            return math.hypot(
                *(
                    energy.value(H + t * Z) - value - t * slope - t**2 * bend
                    for Z, (slope, bend) in zip(directions, models, strict=True)
                )
            )

        assert slope_of(remainder, [2.0**-k for k in (5, 6, 7)]) > 2.9

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(problems())
    def test_the_hessian_leaves_a_remainder_of_second_order_in_the_gradient(self, problem):
        energy, H, (Z, *_) = problem
        G, HZ = energy.value_and_gradient(H).gradient, energy.hessian(H)(Z)

        def remainder(t: float) -> float:
            return (energy.value_and_gradient(H + t * Z).gradient - G - t * HZ).norm().item()

        assert slope_of(remainder, [2.0**-k for k in (7, 8, 9)]) == pytest.approx(2.0, abs=0.1)

    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(problems())
    def test_the_hessian_is_symmetric_and_linear(self, problem):
        energy, H, (Z, *_) = problem
        Y = draw(*H.shape, seed=9)
        hessian = energy.hessian(H)
        assert (Y * hessian(Z)).sum().item() == pytest.approx((Z * hessian(Y)).sum().item(), rel=1e-9, abs=1e-9)
        torch.testing.assert_close(hessian(2 * Z - Y), 2 * hessian(Z) - hessian(Y), rtol=1e-8, atol=1e-8)


class TestRotations:
    @settings(max_examples=30, deadline=None, derandomize=True, database=None)
    @given(problems(), st.integers(0, 10**6))
    def test_the_energy_is_blind_to_rotations_inside_a_layer(self, problem, seed):
        energy, H, _ = problem
        turned = torch.cat(
            [A @ torch.linalg.qr(draw(A.shape[1], A.shape[1], seed=seed))[0] for A in energy.split(H)], 1
        )
        assert energy.value(turned) == pytest.approx(energy.value(H), rel=1e-11)

    def test_the_energy_sees_rotations_across_layers(self):
        energy, _ = make((3, 2), (1.0, 1.0))
        H = orthonormal(N, 5)
        R = torch.linalg.qr(draw(5, 5, seed=3))[0]
        assert abs(energy.value(H @ R) - energy.value(H)) > 1e-3

    def test_the_energy_sees_rotations_below_a_feature_map(self):
        energy, _ = make((3, 2), (1.0, 1.0), deep=FeatureMap(waves))
        H = orthonormal(N, 5)
        turned = torch.cat([H[:, :3] @ torch.linalg.qr(draw(3, 3, seed=3))[0], H[:, 3:]], dim=1)
        assert abs(energy.value(turned) - energy.value(H)) > 1e-6


class TestDerivedEnergies:
    def test_relative_widths_are_bandwidths_over_the_spread_of_the_codes_below(self):
        kernels = [RBF(3.0), RBF(0.2), Cosine(), Matern(2.5, 0.5)]
        energy = Energy(X, kernels, (3, 2, 4, 1), (1.0,) * 4, Dense())
        assert energy.relative_widths() == [pytest.approx(0.2 * N / 6), None, pytest.approx(0.5 * N / 8)]

    def test_the_wider_energy_has_no_deep_kernel_narrower_than_the_spread_of_its_codes(self):
        kernels = [RBF(3.0), RBF(0.01), RBF(2.0)]
        energy = Energy(X, kernels, (3, 2, 2), (1.0, 1.0, 1.0), Dense())
        wider = energy.widened()
        H = orthonormal(N, 7)
        expected = dense_energy(X, [RBF(3.0), RBF(6 / N), RBF(2.0)], (3, 2, 2), (1.0, 1.0, 1.0))
        before = energy.count.evaluations
        assert wider.value(H) == pytest.approx(expected(H).item(), rel=1e-11)
        assert wider.first is energy.first
        assert energy.count.evaluations == before + 1
        assert energy.kernels == tuple(kernels)

    @pytest.mark.parametrize("deep", [RBF(1.0), Cosine(), FeatureMap(waves)], ids=["wide", "cosine", "map"])
    def test_there_is_no_wider_energy_where_no_kernel_is_narrow(self, deep):
        assert make((3, 2), (1.0, 1.0), deep=deep)[0].widened() is None

    def test_new_kernels_give_a_new_energy(self):
        energy, _ = make((3, 2), (1.0, 1.0))
        energy.first_eigenpairs()
        energy.set_kernels([RBF(1.0), RBF(0.4)])
        H = orthonormal(N, 5)
        expected = make((3, 2), (1.0, 1.0), first=RBF(1.0), deep=RBF(0.4))[0]
        assert energy.value(H) == pytest.approx(expected.value(H), rel=1e-14)
        torch.testing.assert_close(energy.first_eigenpairs().values, expected.first_eigenpairs().values)

    def test_leading_eigenpairs_are_those_of_the_first_matrix(self):
        energy, _ = make((3, 2), (1.0, 1.0), center=True)
        C = torch.eye(N).double() - 1 / N
        expected = torch.linalg.eigvalsh(C @ RBF(3.0)(X, X) @ C).flip(0)
        assert len(energy.first_eigenpairs().values) == 10
        torch.testing.assert_close(energy.first_eigenpairs().values, expected[:10], rtol=1e-8, atol=1e-8)

    def test_evaluations_are_counted(self):
        energy, _ = make((3, 2), (1.0, 1.0))
        H = orthonormal(N, 5)
        energy.value(H)
        energy.value_and_gradient(H)
        energy.hessian(H)(H)
        assert (energy.count.evaluations, energy.count.hessian_products) == (2, 1)


class TestPublishedNumbers:
    @pytest.mark.parametrize(("n", "optimum"), [(200, -126.379), (400, -248.358), (800, -506.053)])
    def test_the_optimum_on_the_structured_set(self, n, optimum):
        energy = Energy(structured(n), [RBF(50.0), RBF(50.0)], (10, 5), (1.0, 1.0), Dense())
        result = solve(LBFGS(), energy, starts.kernel_pca(energy))
        assert result.converged
        assert result.objective == pytest.approx(optimum, abs=1e-3)
        assert energy.value(result.H) == pytest.approx(result.objective, rel=1e-12)
        assert stiefel.feasibility(result.H) < 1e-12
