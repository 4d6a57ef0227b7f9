"""The fused operator: tests marked `gpu` run on a GPU, and without one in Triton's interpreter, in another process."""

from __future__ import annotations

import logging
import os

import interpreter
import numpy as np
import pytest
import torch
from gram_suite import GramSuite, MovingSuite, N, of_each

from dense_oracle import dense_energy, draw, orthonormal, structured, values
from drkm import ConstrDRKM
from drkm.gram import Dense, Fused, MovingGram, StoredGram, Sums, SweptGram, Tiled, Workload, by_name, fused
from drkm.gram.dense import StoredPairs
from drkm.gram.fused import FusedGram, FusedStoredGram, form
from drkm.kernels import RBF, Laplacian, Linear, Matern, Polynomial, Precomputed
from drkm.kernels.base import BLOCK_ENTRIES
from drkm.problem.energy import Energy

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
ISOTROPIC = [RBF(2.0), Laplacian(2.0), Matern(1.5, 2.0), Matern(2.5, 2.0)]
needs_gpu = pytest.mark.skipif(INTERPRETED, reason="too large for the interpreter")


class There(MovingGram):
    """An operator on the device with inputs and results on the CPU."""

    def __init__(self, gram):
        self.gram = gram
        self.n = gram.n

    def matmul(self, A):
        return self.gram.matmul(A.to(DEVICE)).cpu()

    def diagonal(self):
        return self.gram.diagonal().cpu()

    def rows(self, index):
        return self.gram.rows(index.to(DEVICE)).cpu()

    def sums(self, A):
        return Sums(*(part.cpu() for part in self.gram.sums(A.to(DEVICE))))

    def tangent(self, A, dU, dA):
        return tuple(part.cpu() for part in self.gram.tangent(A.to(DEVICE), dU.to(DEVICE), dA.to(DEVICE)))

    def parameter_sum(self, A):
        return self.gram.parameter_sum(A.to(DEVICE))


class Moving(MovingSuite):
    def bare(self, points):
        return There(FusedGram(self.kernel(), points.to(DEVICE)))


@pytest.mark.gpu
class TestFused(of_each(ISOTROPIC), Moving):
    pass


@pytest.mark.gpu
class TestCenteredFused(Moving):
    centered = True

    def kernel(self):
        return RBF(2.0)


@pytest.mark.gpu
class TestFusedStored(GramSuite):
    def kernel(self):
        return RBF(2.0)

    def bare(self, points):
        X = points.to(DEVICE)
        return There(FusedStoredGram(form(self.kernel(), X), self.kernel(), X))

    @pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
    @pytest.mark.parametrize("columns", [1, 10, 16, 17])
    def test_products_are_right_for_any_number_of_rows_and_columns(self, n, columns):
        U, A = draw(n, 3), draw(n, columns, seed=1)
        found = self.bare(U.float()).matmul(A.float()).double()
        expected = values(self.kernel(), U, U) @ A
        assert (found - expected).norm() <= 2e-6 * expected.norm()


@pytest.mark.gpu
class TestFusedSizes:
    @pytest.mark.parametrize("n", [1, 2, 128, 129, 300])
    def test_sums_are_right_for_any_number_of_samples(self, n):
        U, A = draw(n, 3), draw(n, 2, seed=1)
        found = There(FusedGram(RBF(2.0), U.to(DEVICE))).sums(A)
        for part, expected in zip(found, SweptGram(RBF(2.0), U).sums(A), strict=True):
            torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-10)

    @pytest.mark.parametrize(("s", "t"), [(1, 1), (10, 5), (20, 10), (40, 30), (100, 3)])
    def test_any_number_of_components_is_served(self, s, t):
        U, A = draw(24, s) / s**0.5, draw(24, t, seed=1)
        dU, dA = draw(24, s, seed=2), draw(24, t, seed=3)
        ours, plain = There(FusedGram(RBF(2.0), U.to(DEVICE))), SweptGram(RBF(2.0), U)
        found = [ours.matmul(A), *ours.sums(A), *ours.tangent(A, dU, dA)]
        expected = [plain.matmul(A), *plain.sums(A), *plain.tangent(A, dU, dA)]
        for part, whole in zip(found, expected, strict=True):
            torch.testing.assert_close(part, whole, rtol=1e-9, atol=1e-9)

    def test_points_far_from_the_origin_lose_no_digits(self):
        U, A = draw(N, 3), draw(N, 2, seed=1)
        far = (U + 1000).float()
        found = There(FusedGram(RBF(2.0), far.to(DEVICE))).sums(A.float())
        exact = SweptGram(RBF(2.0), far.double() - 1000).sums(A)
        for part, expected in zip(found, exact, strict=True):
            assert (part.double() - expected).norm() <= 2e-6 * expected.norm()


@pytest.mark.gpu
class TestFusedFit:
    def test_a_gradient_in_float32_is_right_to_1e_5(self):
        n = 60 if INTERPRETED else 3000
        X, H = structured(n), orthonormal(n, 5)
        kernels = [RBF(50.0), RBF(6 / n)]
        exact = Energy(X, kernels, (3, 2), (1.0, 1.0), Dense()).value_and_gradient(H)
        found = Energy(X.float().to(DEVICE), kernels, (3, 2), (1.0, 1.0), Fused()).value_and_gradient(
            H.float().to(DEVICE)
        )
        assert (found.gradient.cpu().double() - exact.gradient).norm() <= 1e-5 * exact.gradient.norm()
        assert found.value == pytest.approx(exact.value, rel=1e-5)

    def test_two_gradients_are_the_same_to_the_bit(self):
        n = 40 if INTERPRETED else 3000
        energy = Energy(structured(n).float().to(DEVICE), [RBF(50.0), RBF(6 / n)], (3, 2), (1.0, 1.0), Fused())
        H = orthonormal(n, 5).float().to(DEVICE)
        assert torch.equal(energy.value_and_gradient(H).gradient, energy.value_and_gradient(H).gradient)

    def test_training_ends_where_dense_float64_does(self):
        n, sizes = (30, (2, 1)) if INTERPRETED else (400, (10, 5))
        X = structured(n).numpy()
        options = {"n_components": sizes, "eta": 1.0, "dtype": "float64", "tol": 1e-6}
        found = ConstrDRKM(gram="fused", device=DEVICE, **options).fit(X)
        expected = ConstrDRKM(gram="dense", device="cpu", **options).fit(X)
        assert found.converged_
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
        J = dense_energy(torch.from_numpy(X), found.kernels_, sizes, (1.0, 1.0))
        assert float(J(torch.from_numpy(found.codes_))) == pytest.approx(found.objective_, rel=1e-9)
        np.testing.assert_allclose(found.transform(X[:3]), found.codes_[:3], atol=1e-5)

    def test_without_room_for_the_first_matrix_its_tiles_are_used(self, monkeypatch):
        n = 40
        X = structured(n).to(DEVICE)
        monkeypatch.setattr(fused, "SHARE", 0.0)
        energy = Energy(X, [RBF(50.0), RBF(6 / n)], (3, 2), (1.0, 1.0), Fused())
        assert "tiled" in energy.strategy.describe()
        assert not isinstance(energy.first_uncentered, StoredGram)
        assert isinstance(energy.moving(1, orthonormal(n, 5).to(DEVICE)), FusedGram)
        expected = Energy(X.cpu(), [RBF(50.0), RBF(6 / n)], (3, 2), (1.0, 1.0), Dense()).value_and_gradient(
            orthonormal(n, 5)
        )
        found = energy.value_and_gradient(orthonormal(n, 5).to(DEVICE))
        torch.testing.assert_close(found.gradient.cpu(), expected.gradient, rtol=1e-9, atol=1e-9)

    @needs_gpu
    def test_no_second_matrix_is_ever_in_memory(self):
        n, S = 20_000, 15
        X, H = torch.rand(n, 64, device=DEVICE), orthonormal(n, S).float().to(DEVICE)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        energy = Energy(X, [RBF(10.0), RBF(20 / n)], (10, 5), (1.0, 1.0), Fused())
        matrix = 4 * n**2
        assert torch.cuda.max_memory_allocated() - before <= 1.05 * matrix
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        energy.value_and_gradient(H)
        assert torch.cuda.max_memory_allocated() - before <= 50 * n * S * 4


@pytest.mark.parametrize("chosen", ["RBF", pytest.param("not RBF", marks=pytest.mark.slow)])
def test_the_gpu_tests_pass_in_the_interpreter(chosen):
    interpreter.passes(__file__, chosen)


@pytest.mark.skipif(INTERPRETED or torch.cuda.is_available(), reason="there is a device")
class TestWithoutGPU:
    work = Workload(100, 4, (3, 2), (RBF(2.0), RBF(0.1)))

    def test_falls_back_to_tiled_with_one_line_in_the_log(self, caplog):
        pytest.importorskip("triton")
        X, H = structured(50), orthonormal(50, 5)
        with caplog.at_level(logging.WARNING, logger="drkm"):
            energy = Energy(X, [RBF(50.0), RBF(0.1)], (3, 2), (1.0, 1.0), Fused())
            found = energy.value_and_gradient(H)
            energy.hessian(H)(H)
        warned = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert warned == ["gram: fused needs a CUDA device, got cpu, tiled is used instead"]
        expected = Energy(X, [RBF(50.0), RBF(0.1)], (3, 2), (1.0, 1.0), Dense()).value_and_gradient(H)
        torch.testing.assert_close(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)

    def test_says_when_triton_is_missing(self, caplog, monkeypatch):
        monkeypatch.setattr(fused.importlib.util, "find_spec", lambda name: None)
        with caplog.at_level(logging.WARNING, logger="drkm"):
            assert isinstance(Fused().settle(self.work), Tiled)
        assert "gram: fused needs Triton, which is not installed, tiled is used instead" in caplog.text

    def test_says_when_a_gpu_is_too_old(self, monkeypatch):
        pytest.importorskip("triton")
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
        assert fused.why_not(torch.device("cuda")) == "needs a GPU of compute capability 8.0, got 7.5"
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
        assert fused.why_not(torch.device("cuda")) == ""

    def test_is_passed_over_by_auto(self):
        assert not Fused().serves(self.work)
        assert "fused" not in by_name("auto").settle(self.work).name

    @pytest.mark.parametrize("kernel", [*ISOTROPIC, Polynomial(3, 0.3, 0.7)], ids=lambda kernel: kernel.describe())
    def test_its_operators_are_those_of_torch(self, kernel):
        U = draw(N, 3)
        assert type(Fused().fixed(kernel, U)) is StoredPairs
        assert type(Fused().moving(kernel, U)) is SweptGram


@pytest.mark.parametrize("kernel", [*ISOTROPIC, Polynomial(3, 0.3, 0.7)], ids=lambda kernel: kernel.describe())
def test_the_first_matrix_formed_in_place_is_the_gram_matrix(kernel, monkeypatch):
    U = draw(70, 3)
    monkeypatch.setitem(BLOCK_ENTRIES, "cpu", 1)
    K = form(kernel, U)
    torch.testing.assert_close(K, values(kernel, U, U), rtol=1e-7, atol=1e-7)
    assert K.stride() == (128, 1)
    assert not torch.as_strided(K, (70, 58), (128, 1), 70).any()


@pytest.mark.parametrize("kernel", [Linear(), Precomputed()], ids=lambda kernel: kernel.describe())
def test_other_first_layers_are_those_of_dense(kernel):
    K = draw(N, N)
    assert type(Fused().fixed(kernel, K @ K.T)) is type(Dense().fixed(kernel, K @ K.T))


def test_the_cost_holds_the_first_matrix_or_its_tiles():
    work = Workload(10_000, 4, (10, 5), (RBF(2.0), RBF(0.1)), torch.float32)
    partial = fused.MOST_CHUNKS * 10_000 * 16 * 4
    assert Fused().cost(work).bytes == Dense().cost(work).bytes + partial >= 4 * 10_000**2
    assert Fused(Tiled(keep=0)).cost(work).bytes == Tiled(keep=0).cost(work).bytes + partial < 4 * 10_000**2


@pytest.mark.parametrize(
    ("numbers", "dtype", "rows"),
    [(40, torch.float32, 2), (40, torch.float64, 2), (100, torch.float32, 1), (89, torch.float64, 0)],
)
def test_a_thread_owns_as_many_rows_as_registers_hold(numbers, dtype, rows):
    assert fused.rows_per_thread(numbers, dtype) == rows
