from __future__ import annotations

import pytest
import torch
from gram_suite import GramSuite, MovingSuite, N, of_each

from dense_oracle import LargestTensor, draw, network, waves
from drkm import gram as grams
from drkm.gram import Centered, Dense, FeatureGram, StoredGram, SweptGram
from drkm.gram import sweep as sweep_module
from drkm.gram.base import center
from drkm.gram.features import CenteredFeatures, feature_sums
from drkm.kernels import RBF, Cosine, FeatureMap, Laplacian, Linear, Matern, Polynomial, Precomputed

PAIRWISE = [RBF(2.0), Laplacian(2.0), Matern(1.5, 2.0), Matern(2.5, 2.0), Polynomial(3, 0.3, 0.7)]
EXPLICIT = [Linear(), Cosine(), FeatureMap(waves), FeatureMap(waves, normalize=False), FeatureMap(network())]


class Stored(GramSuite):
    def kernel(self):
        return RBF(2.0)

    def bare(self, points):
        return StoredGram(self.kernel()(points, points))


class TestStored(Stored):
    pass


class TestCenteredStored(Stored):
    centered = True


class Swept(of_each(PAIRWISE), MovingSuite):
    def bare(self, points):
        return SweptGram(self.chosen, points)


class SweptBlocks(Swept):
    def test_the_size_of_blocks_changes_nothing(self, monkeypatch):
        A, dU, dA = self.block(), draw(N, 3, seed=3), draw(N, 2, seed=4)

        def everything():
            gram = self.make()
            return [gram.matmul(A), *gram.sums(A)[:2], *gram.tangent(A, dU, dA)], gram.parameter_sum(A)

        expected, total = everything()
        for rows in (1, 16, 17, 36, 37, 1000):
            monkeypatch.setitem(sweep_module.BLOCK_ENTRIES, "cpu", rows * N)
            found, again = everything()
            for part, whole in zip(found, expected, strict=True):
                torch.testing.assert_close(part, whole, rtol=1e-11, atol=1e-11)
            assert again == pytest.approx(total, rel=1e-11)


class TestSwept(SweptBlocks):
    pass


class TestCenteredSwept(SweptBlocks):
    centered = True


class Features(of_each(EXPLICIT, ["linear", "cosine", "waves", "unscaled waves", "network"]), MovingSuite):
    def bare(self, points):
        # `resolve` gives the module the precision of the points.
        return FeatureGram(self.chosen.resolve(points, layer=2), points)


class TestFeatures(Features):
    pass


class TestCenteredFeatures(Features):
    centered = True


class TestFeaturesFarFromZero(GramSuite):
    """They are centred before they are multiplied."""

    centered = True

    def kernel(self):
        return Linear()

    def points(self):
        return super().points() + 20.0

    def make(self, dtype=torch.float64):
        return FeatureGram(Linear(), self.points().to(dtype)).centered()

    def K(self, U, log_scale=0.0):
        return super().K(U - U.mean(dim=0), log_scale)

    def test_is_what_features_far_from_zero_alone_get(self):
        assert isinstance(self.make(), CenteredFeatures)
        assert type(FeatureGram(Linear(), super().points()).centered()) is Centered


@pytest.mark.parametrize("kernel", PAIRWISE, ids=lambda kernel: kernel.describe())
@pytest.mark.parametrize("wrap", [lambda gram: gram, Centered], ids=["bare", "centered"])
def test_a_sweep_never_forms_anything_n_by_n(kernel, wrap):
    n = 1500
    U, A = draw(n, 3), draw(n, 2, seed=1)
    with LargestTensor() as seen:
        gram = wrap(SweptGram(kernel, U))
        gram.matmul(A)
        gram.diagonal()
        gram.sums(A)
        gram.tangent(A, U, A)
        gram.parameter_sum(A)
    assert 0 < seen.entries <= sweep_module.BLOCK_ENTRIES["cpu"]
    assert sweep_module.BLOCK_ENTRIES["cpu"] < n * n / 10


def test_features_never_form_anything_n_by_n():
    n = 1500
    U, A = draw(n, 3), draw(n, 2, seed=1)
    with LargestTensor() as seen:
        gram = Centered(FeatureGram(FeatureMap(waves), U))
        gram.matmul(A)
        gram.diagonal()
        gram.sums(A)
        gram.tangent(A, U, A)
    assert 0 < seen.entries <= 20 * n


def test_centred_products_have_no_mean():
    for kernel in PAIRWISE:
        product = Centered(SweptGram(kernel, draw(N, 3))).matmul(draw(N, 2, seed=1))
        assert product.mean(dim=0).abs().max() <= 1e-12 * product.abs().max()


@pytest.mark.parametrize("value", [1.0, 7.3, 1e-9 / 3])
def test_numbers_that_are_all_alike_have_no_spread_around_their_mean(value):
    assert not center(torch.full((37, 3), value).double()).any()


class TestDenseStrategy:
    @pytest.mark.parametrize("kernel", PAIRWISE, ids=lambda kernel: kernel.describe())
    def test_stores_the_first_layer_and_sweeps_the_deep_ones(self, kernel):
        U = draw(N, 3)
        assert isinstance(Dense().fixed(kernel, U), StoredGram)
        assert isinstance(Dense().moving(kernel, U), SweptGram)

    @pytest.mark.parametrize("kernel", EXPLICIT[:3], ids=lambda kernel: kernel.describe())
    def test_keeps_explicit_features_as_features(self, kernel):
        U = draw(N, 3)
        assert isinstance(Dense().fixed(kernel, U), FeatureGram)
        assert isinstance(Dense().moving(kernel, U), FeatureGram)

    def test_refuses_a_precomputed_matrix_above_the_first_layer(self):
        with pytest.raises(TypeError, match="kernel: Precomputed cannot be used above the first layer"):
            Dense().moving(Precomputed(), draw(N, 3))

    def test_is_what_dense_means(self):
        assert type(grams.by_name("dense")) is Dense

    def test_an_unknown_name_lists_the_allowed_ones(self):
        with pytest.raises(ValueError, match=r"gram: unknown name 'sparse', allowed are auto, dense"):
            grams.by_name("sparse")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_coded_features_are_all_features_to_codes_and_ones(dtype):
    gram = FeatureGram(FeatureMap(waves, normalize=False), draw(60, 3).to(dtype))
    H = torch.linalg.qr(draw(60, 2, seed=1))[0].to(dtype)
    coded = gram.coded(H)
    assert coded.phi.shape == (60, 3)
    tol = 100 * torch.finfo(dtype).eps
    for A in (H, H @ draw(2, 2, seed=2).to(dtype), H - H.mean(dim=0), torch.ones_like(H)):
        torch.testing.assert_close(coded.matmul(A), gram.matmul(A), rtol=tol, atol=tol * 60)
        sums = (feature_sums(operator, gram.kernel, gram.points, A) for operator in (coded, gram))
        torch.testing.assert_close(*sums, rtol=tol, atol=tol * 60)
    torch.testing.assert_close(coded.diagonal(), gram.diagonal())
    with pytest.raises(TypeError, match="gram: the model holds no samples"):
        coded.rows(torch.tensor([0]))
