from __future__ import annotations

import pytest
import torch

from dense_oracle import draw, network, orthonormal, values, waves
from drkm.gram import Dense
from drkm.inference.encoder.coupling import ExplicitCoupling, PairwiseCoupling, couplings
from drkm.kernels import RBF, Cosine, Explicit, FeatureMap, Laplacian, Linear, Matern, Polynomial
from drkm.problem.energy import Energy

N, S, T, M = 29, 3, 2, 7
X = draw(N, 4)
KERNELS = [RBF(0.2), Laplacian(0.2), Matern(1.5, 0.2), Matern(2.5, 0.2), Polynomial(3, 4.0, 0.6), Linear(), Cosine()]
KERNELS += [FeatureMap(waves), FeatureMap(waves, normalize=False), FeatureMap(network())]
IDS = [kernel.describe() for kernel in KERNELS]


@pytest.mark.parametrize("center", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
class TestCoupling:
    def make(self, kernel, center):
        U, A = orthonormal(N, S + T, seed=1).split([S, T], dim=1)
        (coupling,) = couplings([RBF(2.0), kernel], [U, A], center)
        return coupling, U, A

    def batch(self):
        return 0.3 * draw(M, S, seed=2), 0.3 * draw(M, T, seed=3)

    def test_own_gradient_is_the_sum_of_kernel_values_and_codes(self, kernel, center):
        coupling, U, A = self.make(kernel, center)
        u, _ = self.batch()
        k = values(kernel, u, U)
        if center:
            K = values(kernel, U, U)
            k = k - k.mean(dim=1, keepdim=True) - K.mean(dim=0) + K.mean()
        torch.testing.assert_close(coupling.gradient_own(u), k @ A, rtol=1e-9, atol=1e-10)

    def test_value_is_the_dense_sum(self, kernel, center):
        coupling, U, A = self.make(kernel, center)
        u, h = self.batch()
        shift = A.mean(dim=0) if center else torch.zeros(T).double()
        own = values(kernel, u, U) @ (A - shift)
        expected = (own * (h - shift)).sum(dim=1)
        if center:
            expected = expected - h @ (values(kernel, U, U) @ (A - shift)).mean(dim=0)
        torch.testing.assert_close(coupling.value(u, h), expected, rtol=1e-9, atol=1e-10)

    def test_gradients_are_those_of_the_value(self, kernel, center):
        coupling, U, A = self.make(kernel, center)
        u, h = self.batch()
        d_u, d_h = coupling.gradient(u, h)
        expected = torch.func.grad(lambda u, h: self.differentiable(kernel, U, A, center)(u, h).sum(), argnums=(0, 1))
        e_u, e_h = expected(u, h)
        torch.testing.assert_close(d_u, e_u, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(d_h, e_h, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(d_h, coupling.gradient_own(u), rtol=1e-12, atol=1e-12)

    def test_second_derivatives_are_those_of_the_value(self, kernel, center):
        coupling, U, A = self.make(kernel, center)
        u, h = self.batch()
        own, below, second, mixed = coupling.expand(u, h)
        for found, expected in zip((below, own), coupling.gradient(u, h), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        assert second.shape == (M, S, S)
        assert mixed.shape == (M, S, T)
        c = self.differentiable(kernel, U, A, center)
        for i in range(M):

            def one(u, h):
                return c(u[None], h[None])[0]

            (uu, uh), (_, hh) = torch.autograd.functional.hessian(one, (u[i], h[i]))
            torch.testing.assert_close(second[i], uu, rtol=1e-8, atol=1e-9)
            torch.testing.assert_close(mixed[i], uh, rtol=1e-8, atol=1e-9)
            assert hh.abs().max() < 1e-12

    def test_a_batch_is_as_good_as_one_point_at_a_time(self, kernel, center):
        coupling, *_ = self.make(kernel, center)
        u, h = self.batch()
        for i in range(M):
            torch.testing.assert_close(coupling.value(u[i : i + 1], h[i : i + 1]), coupling.value(u, h)[i : i + 1])
            torch.testing.assert_close(
                coupling.expand(u[i : i + 1], h[i : i + 1]).second, coupling.expand(u, h).second[i : i + 1]
            )

    def test_gradients_of_training_codes_are_rows_of_the_energys(self, kernel, center):
        coupling, U, A = self.make(kernel, center)
        energy = Energy(X, [RBF(2.0), kernel], (S, T), (1.0, 1.0), Dense(), center)
        product, pull, _ = energy.moving(1, orthonormal(N, S + T, seed=1)).sums(A)
        d_u, d_h = coupling.gradient(U, A)
        torch.testing.assert_close(d_h, product, rtol=1e-7, atol=1e-8)
        torch.testing.assert_close(d_u, pull, rtol=1e-7, atol=1e-8)

    def test_family_is_chosen_by_the_kernel(self, kernel, center):
        family = ExplicitCoupling if isinstance(kernel, Explicit) else PairwiseCoupling
        assert isinstance(self.make(kernel, center)[0], family)

    def differentiable(self, kernel, U, A, center):
        shift = A.mean(dim=0) if center else torch.zeros(T).double()
        mean = (values(kernel, U, U) @ (A - shift)).mean(dim=0).detach() if center else shift
        return lambda u, h: ((values(kernel, u, U) @ (A - shift)) * (h - shift)).sum(dim=1) - h @ mean


def test_three_layers_have_two_couplings():
    blocks = orthonormal(N, 7).split([3, 2, 2], dim=1)
    first, second = couplings([RBF(2.0), RBF(0.2), Cosine()], blocks, center=False)
    assert isinstance(first, PairwiseCoupling)
    assert isinstance(second, ExplicitCoupling)
    assert first.U.shape == (N, 3)
    assert second.U.shape == (N, 2)
