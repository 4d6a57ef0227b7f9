from __future__ import annotations

import numpy as np
import pytest
import torch

from dense_oracle import draw, orthonormal, structured, waves
from drkm.gram import Dense
from drkm.kernels import RBF, FeatureMap
from drkm.problem import axes, stiefel
from drkm.problem.energy import Energy
from drkm.solvers import LBFGS, solve
from drkm.training import starts

N = 90
NAMES = ["ritz", "varimax", "ica", None]
X = structured(N)


def make(sizes=(5, 3), deep=None, center=False, dtype=torch.float64):
    kernels = [RBF(20.0), *[deep or RBF(0.1)] * (len(sizes) - 1)]
    return Energy(X.to(dtype), kernels, sizes, (1.0,) * len(sizes), Dense(), center)


def products(energy, H):
    return axes.products(energy, H, energy.first.matmul(energy.split(H)[0]))


def rotations(energy, H, name):
    return axes.rotations(energy, H, products(energy, H), name)


@pytest.fixture(scope="module")
def fitted():
    energy = make()
    return energy, solve(LBFGS(), energy, starts.kernel_pca(energy)).H


@pytest.mark.parametrize("name", NAMES)
class TestEveryChoice:
    def test_is_one_orthogonal_matrix_a_layer(self, name, fitted):
        rotation = rotations(*fitted, name)
        assert [R.shape for R in rotation] == [(5, 5), (3, 3)]
        for R in rotation:
            assert R.dtype == torch.float64
            assert (R.T @ R - torch.eye(len(R)).double()).norm() < 1e-12

    def test_keeps_the_span_and_orthonormality_of_the_codes(self, name, fitted):
        energy, H = fitted
        rotation = rotations(energy, H, name)
        turned = torch.cat([A @ R for A, R in zip(energy.split(H), rotation, strict=True)], dim=1)
        assert (turned.T @ turned - torch.eye(8).double()).norm() < 1e-12
        for A, B in zip(energy.split(H), energy.split(turned), strict=True):
            torch.testing.assert_close(A @ A.T, B @ B.T, rtol=0, atol=1e-12)
        assert energy.value(turned) == pytest.approx(energy.value(H), rel=1e-12)

    def test_two_calls_agree_in_every_bit(self, name, fitted):
        first = rotations(*fitted, name)
        np.random.default_rng(5).random(3)
        torch.rand(3)
        for A, B in zip(first, rotations(*fitted, name), strict=True):
            assert torch.equal(A, B)

    def test_reports_the_same_codes_whatever_basis_the_solver_ended_in(self, name, fitted):
        if name is None:
            pytest.skip("no choice of axes keeps the solver's basis")
        energy, H = fitted
        spun = torch.cat([A @ orthonormal(A.shape[1], A.shape[1], seed=4) for A in energy.split(H)], dim=1)
        codes = [
            torch.cat([A @ R for A, R in zip(energy.split(B), rotations(energy, B, name), strict=True)], dim=1)
            for B in (H, spun)
        ]
        # The second layer of so few samples is too Gaussian for FastICA to converge: rounding decides its axes.
        compared = energy.slices[0] if name == "ica" else slice(None)
        torch.testing.assert_close(codes[0][:, compared], codes[1][:, compared], rtol=0, atol=1e-6)

    def test_signs_make_the_largest_entry_of_every_code_positive(self, name, fitted):
        if name is None:
            pytest.skip("no choice of axes keeps the solver's basis")
        energy, H = fitted
        for A, R in zip(energy.split(H), rotations(energy, H, name), strict=True):
            codes = A @ R
            assert (codes.max(dim=0).values >= -codes.min(dim=0).values).all()

    def test_estimates_are_sorted_and_add_up_to_the_trace(self, name, fitted):
        energy, H = fitted
        rotation = rotations(energy, H, name)
        estimates = axes.eigenvalue_estimates(products(energy, H), rotation)
        for layer, (values, energy_of_layer) in enumerate(zip(estimates, energy.layer_values(H), strict=True)):
            assert values.sum().item() == pytest.approx(-2 * energy_of_layer, rel=1e-10), layer
            if name is not None:
                assert (values.diff() <= 1e-12).all()

    def test_is_the_identity_below_a_feature_map_and_free_on_top(self, name):
        energy = make(deep=FeatureMap(waves), sizes=(3, 2))
        below, top = rotations(energy, orthonormal(N, 5), name)
        assert torch.equal(below, torch.eye(3).double())
        assert (torch.equal(top, torch.eye(2).double())) == (name is None)

    def test_one_component_works(self, name):
        (R,) = rotations(make(sizes=(1,)), orthonormal(N, 1), name)
        assert R.abs().item() == pytest.approx(1.0)

    def test_float32_codes_give_float64_rotations(self, name):
        rotation = rotations(make(dtype=torch.float32), orthonormal(N, 8).float(), name)
        for R in rotation:
            assert R.dtype == torch.float64
            assert (R.T @ R - torch.eye(len(R)).double()).norm() < 1e-12


class TestRitz:
    @pytest.mark.parametrize("center", [False, True])
    def test_diagonalises_every_layer(self, center):
        energy, H = make(center=center), orthonormal(N, 8)
        for layer, R in enumerate(rotations(energy, H, "ritz")):
            A = energy.split(H)[layer] @ R
            T = A.T @ energy.gram(layer, H).matmul(A)
            assert (T - T.diag().diag()).abs().max() < 1e-11 * T.diag().max()

    def test_estimates_of_one_layer_are_the_eigenvalues_of_its_matrix(self):
        energy = make(sizes=(5,))
        K = RBF(20.0)(X, X)
        expected, vectors = torch.linalg.eigh(K)
        H = vectors[:, -5:] @ orthonormal(5, 5, seed=3)
        (found,) = axes.eigenvalue_estimates(products(energy, H), rotations(energy, H, "ritz"))
        torch.testing.assert_close(found, expected.flip(0)[:5], rtol=1e-10, atol=1e-10)


def kaiser(B: torch.Tensor) -> float:
    """Return the sum over columns of the variance of the squared entries."""
    return B.square().var(dim=0, correction=0).sum().item()


class TestVarimax:
    @pytest.mark.parametrize("seed", range(5))
    def test_raises_kaisers_criterion_to_a_local_maximum(self, seed):
        A = draw(200, 4, seed=seed) ** 3
        best = kaiser(A @ axes.varimax(A))
        assert best >= kaiser(A)
        for angle in (-0.02, 0.02):
            for i in range(4):
                for j in range(i):
                    G = torch.eye(4).double()
                    G[[i, j], [i, j]] = float(np.cos(angle))
                    G[i, j], G[j, i] = float(np.sin(angle)), -float(np.sin(angle))
                    assert kaiser(A @ axes.varimax(A) @ G) <= best * (1 + 1e-9)

    def test_finds_a_simple_structure_again(self):
        simple = torch.zeros(120, 3).double()
        for k in range(3):
            simple[40 * k : 40 * k + 40, k] = 1 + 0.1 * draw(40, seed=k)
        R = orthonormal(3, 3, seed=8)
        found = R @ axes.varimax(simple @ R)
        assert (found.abs().max(dim=0).values > 1 - 1e-6).all()

    def test_raises_the_criterion_of_codes(self, fitted):
        energy, H = fitted
        ritz, varimax = (rotations(energy, H, name) for name in ("ritz", "varimax"))
        for A, before, after in zip(energy.split(H), ritz, varimax, strict=True):
            assert kaiser(A @ after) >= kaiser(A @ before) * (1 - 1e-9)


class TestICA:
    @pytest.mark.parametrize("seed", range(4))
    def test_recovers_the_axes_of_an_orthogonal_mixture(self, seed):
        rng = np.random.default_rng(seed)
        n = 3000
        sources = np.stack([rng.uniform(-1, 1, n), rng.laplace(size=n), rng.choice([-1.0, 1.0], n)], axis=1)
        # Codes are orthonormal, which makes a mixture of them white without any whitening.
        sources = n**0.5 * stiefel.polar(torch.from_numpy(sources - sources.mean(axis=0)))
        R = orthonormal(3, 3, seed=seed + 40)
        found = R @ axes.ica(sources @ R)
        assert (found.T @ found - torch.eye(3).double()).norm() < 1e-12
        assert (found.abs().max(dim=0).values > 0.999).all()
        assert sorted(found.abs().argmax(dim=0).tolist()) == [0, 1, 2]

    def test_is_silent_about_gaussian_data(self):
        R = axes.ica(draw(100, 4))
        assert (R.T @ R - torch.eye(4).double()).norm() < 1e-12
