"""The first layer on tensor cores: on a GPU, and without one in Triton's interpreter, in another process."""

from __future__ import annotations

import interpreter
import numpy as np
import pytest
import torch
from gram_suite import GramSuite, of_each
from test_fused import DEVICE, INTERPRETED, There, needs_gpu

from dense_oracle import draw, structured, values
from drkm import ConstrDRKM, KernelPCA
from drkm.gram import Centered, Fused, StoredGram, Tiled, TiledGram, Workload, fused
from drkm.gram.fused import FusedGram
from drkm.gram.split import LARGEST, Split, SplitGram, halves, padded, serves, split_gram
from drkm.kernels import RBF, Cosine, Laplacian, Linear, Matern, Polynomial
from drkm.problem import eigen
from drkm.problem.eigen import leading_eigenpairs

KERNELS = [RBF(2.0), Laplacian(2.0), Matern(1.5, 2.0), Matern(2.5, 2.0), Polynomial(3, 0.3, 0.7)]


def relative(found, expected):
    return float((found.cpu().double() - expected).norm() / expected.norm())


class Single(There):
    """An operator in float32 whose results have the precision of the input."""

    def matmul(self, A):
        return super().matmul(A.float()).to(A.dtype)

    def diagonal(self):
        return super().diagonal().double()

    def rows(self, index):
        return super().rows(index).double()


@pytest.mark.gpu
class TestSplit(of_each(KERNELS), GramSuite):
    rtol, atol = 1e-5, 1e-5

    def bare(self, points):
        return Single(SplitGram(self.kernel(), points.float().to(DEVICE)))


@pytest.mark.gpu
class TestSplitProducts:
    @pytest.mark.parametrize("n", [1, 127, 129])
    @pytest.mark.parametrize("columns", [1, 16, 40])
    def test_are_right_for_any_number_of_rows_and_columns(self, n, columns):
        U, A = draw(n, 3), draw(n, columns, seed=1)
        found = SplitGram(RBF(2.0), U.float().to(DEVICE)).matmul(A.float().to(DEVICE))
        assert relative(found, values(RBF(2.0), U.float().double(), U.float().double()) @ A) <= 2e-6

    @pytest.mark.parametrize("d", [1, 50, 100, 130, pytest.param(4096, marks=needs_gpu)])
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.describe())
    def test_are_right_for_any_number_of_features(self, d, kernel):
        U, A = (draw(70, d) / d**0.5).float(), draw(70, 4, seed=1).float()
        found = SplitGram(kernel, U.to(DEVICE)).matmul(A.to(DEVICE))
        assert relative(found, values(kernel, U.double(), U.double()) @ A.double()) <= 2e-6

    def test_rough_ones_have_three_digits(self):
        U, A = draw(150, 5).float(), draw(150, 4, seed=1).float()
        gram = SplitGram(RBF(2.0), U.to(DEVICE))
        expected = values(RBF(2.0), U.double(), U.double()) @ A.double()
        assert 1e-5 < relative(gram.rough.matmul(A.to(DEVICE)), expected) <= 1e-3

    def test_columns_of_any_size_keep_their_digits(self):
        U, A = draw(150, 5).float(), draw(150, 3, seed=1) * torch.tensor([1e-12, 1.0, 1e12])
        found = SplitGram(RBF(2.0), U.to(DEVICE)).matmul(A.float().to(DEVICE)).cpu()
        expected = values(RBF(2.0), U.double(), U.double()) @ A
        for column in range(3):
            assert relative(found[:, column], expected[:, column]) <= 2e-6

    def test_rough_or_not_kernel_values_near_the_end_of_float32_are_not_lost(self):
        kernel = Polynomial(8, gamma=1.0, offset=0.0)
        U, A = (0.04 * torch.nn.functional.normalize(draw(150, 5))).float(), 1e-11 * draw(150, 3, seed=1).float()
        gram = SplitGram(kernel, U.to(DEVICE))
        expected = values(kernel, U.double(), U.double()) @ A.double()
        # The error of x·y grows eightfold with the power.
        assert relative(gram.matmul(A.to(DEVICE)), expected) <= 2e-5
        assert relative(gram.rough.matmul(A.to(DEVICE)), expected) <= 2e-2

    def test_samples_that_repeat_are_one_point_to_every_kernel(self):
        U = (0.3 * draw(40, 30)).float().repeat(2, 1)
        A = draw(80, 2, seed=1).float()
        for kernel in KERNELS:
            found = SplitGram(kernel, U.to(DEVICE)).matmul(A.to(DEVICE))
            assert relative(found, values(kernel, U.double(), U.double()) @ A.double()) <= 2e-6

    def test_long_sums_lose_no_digits(self, monkeypatch):
        monkeypatch.setattr("drkm.gram.split.LONGEST", 256)
        U, A = draw(600, 3).float(), draw(600, 2, seed=1).float()
        found = SplitGram(RBF(2.0), U.to(DEVICE)).matmul(A.to(DEVICE))
        assert relative(found, values(RBF(2.0), U.double(), U.double()) @ A.double()) <= 2e-6

    @needs_gpu
    @pytest.mark.parametrize("d", [50, 784])
    def test_of_many_samples_are_right_to_2e_6_on_some_rows(self, d):
        n = 200_000
        X, A = structured(n)[:, : min(d, 64)].float().to(DEVICE), torch.randn(n, 32, device=DEVICE)
        X = torch.cat([X, X.new_zeros(n, max(0, d - 64))], dim=1)
        kernel, index = RBF("median").resolve(X, layer=1), torch.arange(0, n, 2000, device=DEVICE)
        expected = (kernel(X[index].double(), X.double()) @ A.double()).cpu()
        assert relative(SplitGram(kernel, X).matmul(A)[index], expected) <= 2e-6

    def test_two_are_the_same_to_the_bit(self):
        n = 300 if INTERPRETED else 50_000
        U, A = draw(n, 5).float().to(DEVICE), draw(n, 4, seed=1).float().to(DEVICE)
        gram = SplitGram(RBF(2.0), U)
        assert torch.equal(gram.matmul(A), gram.matmul(A))


@pytest.mark.gpu
class TestSplitParts:
    @pytest.mark.parametrize("operator", [SplitGram, FusedGram])
    @pytest.mark.parametrize("centered", [False, True])
    def test_some_points_give_columns_of_the_whole(self, operator, centered):
        U, index = draw(150, 5).float(), torch.arange(0, 150, 4)
        A = draw(len(index), 3, seed=1).float()
        whole = operator(RBF(2.0), U.to(DEVICE))
        whole = Centered(whole) if centered else whole
        part = whole.subset(index.to(DEVICE))
        K = values(RBF(2.0), U.double(), U.double())[:, index]
        expected = K @ A.double()
        expected = expected - expected.mean(dim=0) if centered else expected
        assert relative(part.extend(A.to(DEVICE)), expected) <= 2e-6
        assert part.gram.n == len(index)

    @pytest.mark.parametrize("centered", [False, True])
    def test_eigenpairs_from_rough_products_are_certified_by_exact_ones(self, centered, monkeypatch):
        n, count = (400, 3) if INTERPRETED else (20_000, 10)
        monkeypatch.setattr(eigen, "COARSE_ABOVE", 300)
        monkeypatch.setattr(eigen, "COARSE_LEAST", 250)
        X = structured(n).float().to(DEVICE)
        kernel = RBF("median").resolve(X, layer=1)
        K = kernel(X.double(), X.double())
        if centered:
            K = K - K.mean(dim=0) - K.mean(dim=1, keepdim=True) + K.mean()
        gram = SplitGram(kernel, X)
        pairs = leading_eigenpairs(Centered(gram) if centered else gram, count, like=X, tol=0.0)
        V, rho = pairs.vectors.double(), pairs.values.double()
        residual = float(torch.linalg.vector_norm(K @ V - V * rho, dim=0).max() / rho[0])
        assert pairs.residual <= 6e-6
        assert residual <= pairs.residual + 2e-6
        exact = torch.linalg.eigvalsh(K).flip(0)[:count] if INTERPRETED else torch.lobpcg(K, count)[0]
        torch.testing.assert_close(rho, exact, rtol=1e-5, atol=0)


@pytest.mark.gpu
class TestSplitFit:
    def test_kernel_pca_is_that_of_float64(self):
        n = 250 if INTERPRETED else 5000
        X = structured(n).numpy()
        options = {"n_components": 3, "kernel": "rbf", "gamma": 0.02}
        found = KernelPCA(gram="fused", device=DEVICE, dtype="float32", **options).fit(X)
        expected = KernelPCA(device="cpu", **options).fit(X)
        np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-5)
        scale = np.abs(expected.transform(X[:20])).max()
        signs = np.sign((found.eigenvectors_ * expected.eigenvectors_).sum(axis=0))
        np.testing.assert_allclose(found.transform(X[:20]) * signs, expected.transform(X[:20]), atol=1e-4 * scale)

    @pytest.mark.parametrize("sizes", [3, (2, 1)])
    def test_layers_converge_and_training_points_get_their_codes_back(self, sizes):
        X = structured(250 if INTERPRETED else 5000).numpy()
        model = ConstrDRKM(sizes, gram="fused", device=DEVICE, dtype="float32", tol=1e-4).fit(X)
        assert model.converged_
        assert "recomputed" in model.summary()
        np.testing.assert_allclose(model.transform(X[:3]), model.codes_[:3], atol=1e-3 * np.abs(model.codes_).max())

    @needs_gpu
    @pytest.mark.parametrize("preimage", ["ridge", "fixed-point", "gradient"])
    def test_preimages_of_samples_on_a_gpu_are_on_it(self, preimage):
        X = structured(300).float().to(DEVICE)
        model = KernelPCA(5, kernel="rbf", gamma=0.02, preimage=preimage).fit(X)
        points = model.inverse_transform(model.transform(X[:4]))
        assert points.device == X.device
        assert (points - X[:4]).norm() < 0.5 * X[:4].norm()

    @needs_gpu
    def test_nothing_of_n_squared_is_stored(self):
        n = 60_000
        X = torch.rand(n, 50, device=DEVICE)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        ConstrDRKM(10, device=DEVICE, dtype="float32", tol=1e-3).fit(X)
        assert torch.cuda.max_memory_allocated() < 0.1 * 4 * n**2


@pytest.mark.parametrize("chosen", ["RBF or rough", pytest.param("not (RBF or rough)", marks=pytest.mark.slow)])
def test_the_gpu_tests_pass_in_the_interpreter(chosen):
    interpreter.passes(__file__, chosen)


class TestChoice:
    def settled(self, monkeypatch, available=1e11, **options):
        monkeypatch.setattr(fused, "why_not", lambda device: "")
        monkeypatch.setattr("drkm.machine.memory.available", lambda device: available)
        work = {"n": 100_000, "d": 50, "sizes": (10, 5), "kernels": (RBF(2.0), RBF(0.1)), "dtype": torch.float32}
        return Fused().settle(Workload(**{**work, **options}))

    def test_few_features_are_recomputed(self, monkeypatch):
        assert isinstance(self.settled(monkeypatch).first, Split)

    def test_many_features_are_stored_for_the_many_products_of_a_deep_model(self, monkeypatch):
        assert self.settled(monkeypatch, d=784).first is None

    def test_and_recomputed_for_the_few_of_one_layer(self, monkeypatch):
        assert isinstance(self.settled(monkeypatch, d=784, sizes=(10,), kernels=(RBF(2.0),)).first, Split)

    def test_and_where_they_do_not_fit(self, monkeypatch):
        assert isinstance(self.settled(monkeypatch, d=784, n=300_000).first, Split)

    @pytest.mark.parametrize("options", [{"dtype": torch.float64}, {"kernels": (Linear(), RBF(0.1))}])
    def test_float64_and_other_kernels_are_stored(self, monkeypatch, options):
        assert self.settled(monkeypatch, n=50_000, **options).first is None

    def test_what_fits_neither_way_is_tiled(self, monkeypatch):
        assert isinstance(self.settled(monkeypatch, available=1e9, n=300_000, d=784).first, Tiled)

    def test_says_that_it_is_recomputed(self):
        assert Fused(Split()).describe() == "fused, K_1 recomputed"

    def test_the_cost_is_the_samples_once_more(self):
        work = Workload(10_000, 50, (10,), (RBF(2.0),), torch.float32)
        assert Split().cost(work).bytes >= 10_000 * (50 + 64) * 4
        assert Split().cost(work).bytes < 4 * 10_000**2


def test_points_too_large_for_halves_are_tiled():
    U = 10 * LARGEST * draw(40, 3).float()
    assert split_gram(RBF(2.0), U) is None
    assert isinstance(Split().fixed(RBF(2.0), U), TiledGram)


def test_points_whose_products_halves_would_round_are_tiled():
    U = draw(40, 3).float()
    for small, offset, is_served in ((1e-3, 0.0, False), (0.0, 0.0, False), (1e-3, 1.0, True), (0.1, 0.0, True)):
        kernel = Polynomial(2, gamma=1.0, offset=offset)
        assert (split_gram(kernel, small * U) is not None) == is_served
        assert isinstance(Split().fixed(kernel, small * U), TiledGram) != is_served
    assert split_gram(RBF(1.0), 1e-3 * U) is not None


def test_halves_add_up_to_22_bits():
    A = draw(100, 3).float()
    high, low = halves(A)
    assert ((high.double() + low.double() - A.double()).abs() <= 2.0**-22 * A.abs() + 2.0**-25).all()


@pytest.mark.parametrize(("d", "width"), [(1, 16), (16, 16), (50, 64), (100, 128), (129, 192), (784, 832)])
def test_features_are_padded_to_what_tensor_cores_take(d, width):
    assert padded(d) == width


@pytest.mark.parametrize("kernel", [Linear(), Cosine(), Polynomial(9, 0.3, 0.7)], ids=lambda kernel: kernel.describe())
def test_other_kernels_are_not_served(kernel):
    assert not serves(kernel, torch.float32)


def test_float64_is_not_served():
    assert not serves(RBF(2.0), torch.float64)


class Rough(StoredGram):
    """A matrix whose rough products are those of another matrix that differs by a thousandth."""

    @property
    def rough(self):
        noise = draw(self.n, self.n, seed=5)
        return StoredGram(self.K + 3e-4 * self.K.norm() / self.n * (noise + noise.T))


def test_an_eigensolver_with_rough_products_finds_what_exact_ones_find():
    X = structured(600)
    K = values(RBF(50.0), X, X)
    exact = torch.linalg.eigvalsh(K).flip(0)[:5]
    pairs = leading_eigenpairs(Rough(K), 5, like=K, tol=1e-9)
    residual = float(torch.linalg.vector_norm(K @ pairs.vectors - pairs.vectors * pairs.values, dim=0).max())
    assert pairs.residual <= 1e-9
    assert residual / exact[0] == pytest.approx(pairs.residual, rel=1e-3)
    torch.testing.assert_close(pairs.values, exact, rtol=1e-9, atol=0)
