"""The suite that every Gram operator inherits: it supplies a maker and its points; the oracle is the whole matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from dense_oracle import centring, draw, orthonormal, radial, squared_distances, values
from drkm.gram import Centered, Gram, MovingGram
from drkm.kernels import Isotropic, Kernel, Laplacian, Polynomial

N, S, T = 37, 3, 2


def of_each(kernels: Sequence[Kernel], ids: Any = lambda kernel: kernel.describe()) -> type:
    """Return a base class with which a suite runs once for each of these kernels, `chosen`."""

    class OfEach:
        @pytest.fixture(autouse=True, params=kernels, ids=ids)
        def choose(self, request):
            self.chosen = request.param

        def kernel(self):
            return self.chosen

    return OfEach


class GramSuite:
    """Operators of points that do not move."""

    centered = False
    #: relative and absolute tolerance of products, less strict for operators that only support float32
    rtol, atol = 1e-10, 1e-11

    def kernel(self) -> Kernel:
        raise NotImplementedError

    def bare(self, points: Tensor) -> Gram:
        """Return the operator at some points, not centred."""
        raise NotImplementedError

    def points(self) -> Tensor:
        return orthonormal(N, S, seed=1) * N**0.5

    def make(self, dtype: torch.dtype = torch.float64) -> Gram:
        gram = self.bare(self.points().to(dtype))
        return Centered(gram) if self.centered else gram

    def K(self, U: Tensor, log_scale: Tensor | float = 0.0) -> Tensor:
        K = values(self.kernel(), U, U, log_scale)
        return centring(len(U)) @ K @ centring(len(U)) if self.centered else K

    def test_knows_its_size(self):
        assert self.make().n == N

    @pytest.mark.parametrize("columns", [1, T, N])
    def test_product_equals_the_dense_one(self, columns):
        A = draw(N, columns, seed=2)
        torch.testing.assert_close(self.make().matmul(A), self.K(self.points()) @ A, rtol=self.rtol, atol=self.atol)

    def test_product_takes_a_slice_of_columns(self):
        A = draw(N, 6, seed=2)[:, 1:5]
        torch.testing.assert_close(self.make().matmul(A), self.make().matmul(A.contiguous()), rtol=1e-12, atol=1e-12)

    def test_diagonal_equals_the_dense_one(self):
        expected = self.K(self.points()).diagonal()
        torch.testing.assert_close(self.make().diagonal(), expected, rtol=self.rtol, atol=self.atol)

    def test_rows_equal_the_dense_ones(self):
        index = torch.tensor([5, 0, 36, 5])
        # The squared distance of equal points is a rounding error, of which the Laplacian takes the root.
        least = max(self.rtol, 1e-7)
        torch.testing.assert_close(self.make().rows(index), self.K(self.points())[index], rtol=least, atol=least)

    def test_product_in_float32_is_right_to_float32(self):
        A = draw(N, T, seed=2)
        found, expected = self.make(torch.float32).matmul(A.float()), self.K(self.points()) @ A
        assert found.dtype == torch.float32
        assert (found.double() - expected).norm() <= 3e-6 * N**0.5 * expected.norm() + 1e-5

    def test_arguments_are_left_as_they_were(self):
        A = draw(N, T, seed=2)
        before = A.clone()
        gram = self.make()
        first = gram.matmul(A)
        assert torch.equal(A, before)
        assert torch.equal(gram.matmul(A), first)


class MovingSuite(GramSuite):
    """Operators of points that move: what gradients and Hessian products need."""

    def half_trace(self, U: Tensor, A: Tensor) -> Tensor:
        return 0.5 * torch.trace(A.T @ self.K(U) @ A)

    def parts(self, U: Tensor, A: Tensor) -> tuple[Tensor, Tensor]:
        """Return KA and the pull, by automatic differentiation of tr(AᵀK(U)A)/2."""
        pull, product = torch.func.grad(self.half_trace, argnums=(0, 1))(U, A)
        return product, pull

    def block(self) -> Tensor:
        return draw(N, T, seed=2)

    def test_sums_equal_automatic_derivatives(self):
        sums = self.make().sums(self.block())
        product, pull = self.parts(self.points(), self.block())
        torch.testing.assert_close(sums.product, product, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(sums.pull, pull, rtol=1e-9, atol=1e-10)

    def test_sums_take_a_slice_of_columns(self):
        A = draw(N, 6, seed=2)[:, 1:5]
        for found, expected in zip(self.make().sums(A), self.make().sums(A.contiguous()), strict=True):
            if expected is not None:
                torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)

    def test_curvature_is_the_weight_of_a_points_own_code(self):
        kernel, A = self.kernel(), self.block()
        curvature = self.make().sums(A).curvature
        if not isinstance(kernel, Isotropic):
            assert curvature is None
            return
        A = A - A.mean(dim=0) if self.centered else A
        d2 = squared_distances(self.points(), self.points())
        d2.fill_diagonal_(1e-14)
        weight = -2 * torch.func.grad(lambda d2: radial(kernel, d2).sum())(d2)
        if isinstance(kernel, Laplacian):
            weight.fill_diagonal_(0.0)
        torch.testing.assert_close(curvature, (weight * (A @ A.T)).sum(dim=1), rtol=1e-5, atol=1e-5)

    def test_tangent_equals_automatic_derivatives_of_the_sums(self):
        U, A = self.points(), self.block()
        dU, dA = draw(N, S, seed=3), draw(N, T, seed=4)
        found = self.make().tangent(A, dU, dA)
        # Both are gradients of one function, whose Hessian is symmetric: its columns are its rows.
        d_pull, d_product = torch.func.vjp(self.parts, U, A)[1]((dA, dU))
        torch.testing.assert_close(found[0], d_product, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(found[1], d_pull, rtol=1e-9, atol=1e-9)

    def test_tangent_is_the_limit_of_differences_of_the_sums(self):
        U, A, h = self.points(), self.block(), 1e-5
        dU, dA = draw(N, S, seed=3), draw(N, T, seed=4)

        def sums(t: float):
            gram = self.bare(U + t * dU)
            return (Centered(gram) if self.centered else gram).sums(A + t * dA)

        up, down = sums(h), sums(-h)
        found = self.make().tangent(A, dU, dA)
        torch.testing.assert_close(found[0], (up.product - down.product) / (2 * h), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found[1], (up.pull - down.pull) / (2 * h), rtol=1e-5, atol=1e-5)

    def test_parameter_sum_is_the_derivative_in_log_sigma2(self):
        if isinstance(self.kernel(), Polynomial):
            pytest.skip("a polynomial has no bandwidth to learn")
        A = self.block()
        log = torch.zeros((), dtype=torch.float64, requires_grad=True)
        total = torch.trace(A.T @ self.K(self.points(), log) @ A)
        expected = torch.autograd.grad(total, log)[0].item() if isinstance(self.kernel(), Isotropic) else 0.0
        assert self.make().parameter_sum(A) == pytest.approx(expected, rel=1e-9, abs=1e-10)

    def test_sums_and_tangent_in_float32_are_right_to_float32(self):
        A, dU, dA = self.block(), draw(N, S, seed=3), draw(N, T, seed=4)
        gram = self.make(torch.float32)
        assert isinstance(gram, MovingGram)
        found = [*gram.sums(A.float())[:2], *gram.tangent(A.float(), dU.float(), dA.float())]
        expected = [*self.make().sums(A)[:2], *self.make().tangent(A, dU, dA)]
        for single, double in zip(found, expected, strict=True):
            assert single.dtype == torch.float32
            assert (single.double() - double).norm() <= 2e-5 * double.norm() + 1e-6

    def test_coincident_points_give_finite_sums(self):
        U = self.points()
        U[3:9] = U[3]
        A = self.block()
        gram = self.bare(U)
        gram = Centered(gram) if self.centered else gram
        found = [*gram.sums(A)[:2], *gram.tangent(A, draw(N, S, seed=3), A)]
        assert all(torch.isfinite(part).all() for part in found)
