"""Explicit features in place of kernels: the operators, the approximation itself, and what strategies refuse."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
import torch
from gram_suite import GramSuite, MovingSuite, N, S, of_each
from test_gram import LargestTensor

from dense_oracle import centring, draw, values
from drkm import gram as grams
from drkm.gram import Centered, Dense, FeatureGram, Fourier, FourierGram, Nystroem, SweptGram
from drkm.gram import features as features_module
from drkm.gram.landmarks import choose_landmarks, pivots
from drkm.inference.encoder.coupling import ExplicitCoupling, FourierCoupling
from drkm.kernels import RBF, FourierFeatures, Laplacian, Linear, Matern, NystroemFeatures, Polynomial, Precomputed
from drkm.kernels.fourier import DRAWING, TOGETHER
from drkm.problem.energy import Energy

STATIONARY = [RBF(2.0), Laplacian(2.0), Matern(1.5, 2.0), Matern(2.5, 2.0)]
PAIRWISE = [*STATIONARY, Polynomial(3, 0.3, 0.7)]


def frequencies(kernel, inputs=S, count=50, orthogonal=True, seed=0):
    like = torch.zeros(0, dtype=torch.float64)
    options = {"orthogonal": orthogonal, "random_state": seed, "like": like}
    return FourierFeatures.drawn(kernel, inputs, count, **options).frequencies


def mean_of_cosines(kernel, omega, x, y, log_scale=0.0):
    """Return the kernel that Fourier features stand for, by the addition theorem, without features."""
    sigma = (kernel.sigma2 * torch.exp(torch.as_tensor(log_scale, dtype=x.dtype))).sqrt()
    return torch.cos((x[:, None, :] - y[None, :, :]) @ omega / sigma).mean(dim=2)


def through_landmarks(kernel, Z, x, y, log_scale=0.0):
    """k(x, Z) K_ZZ⁻¹ k(Z, y) by textbook formulas."""
    K = values(kernel, Z, Z, log_scale)
    return values(kernel, x, Z, log_scale) @ torch.linalg.solve(K, values(kernel, Z, y, log_scale))


class ApproximateSuite(GramSuite):
    def approximate(self, x, y, log_scale=0.0):
        raise NotImplementedError

    def K(self, U, log_scale=0.0):
        K = self.approximate(U, U, log_scale)
        return centring(len(U)) @ K @ centring(len(U)) if self.centered else K


class FourierSuite(of_each(STATIONARY), ApproximateSuite, MovingSuite):
    # Operators do not depend on the origin of frequencies, and Cauchy frequencies are too high for finite differences.
    omega = frequencies(RBF(1.0))

    def approximate(self, x, y, log_scale=0.0):
        return mean_of_cosines(self.chosen, self.omega, x, y, log_scale)

    def features(self, points):
        return FourierFeatures(self.chosen, self.omega.to(points))


class FourierSwept(FourierSuite):
    def bare(self, points):
        return FourierGram(self.features(points), points)

    def test_curvature_is_the_weight_of_a_points_own_code(self):
        """It is that of the RBF, from the features, and an approximation for the other kernels."""
        A = self.block()
        curvature = self.make().sums(A).curvature
        A = A - A.mean(dim=0) if self.centered else A
        expected = (A * (self.approximate(self.points(), self.points()) @ A)).sum(dim=1) / self.chosen.sigma2
        torch.testing.assert_close(curvature, expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("rows", [1, 17, 37])
    def test_the_size_of_blocks_changes_nothing(self, rows, monkeypatch):
        A, dU, dA = self.block(), draw(N, S, seed=3), draw(N, 2, seed=4)

        def everything():
            gram = self.make()
            return [gram.matmul(A), *gram.sums(A)[:2], *gram.tangent(A, dU, dA)]

        expected = everything()
        parts = [slice(i, min(i + rows, N)) for i in range(0, N, rows)]
        monkeypatch.setattr("drkm.gram.fourier_gram.blocks", lambda *_: parts)
        for part, whole in zip(everything(), expected, strict=True):
            torch.testing.assert_close(part, whole, rtol=1e-11, atol=1e-11)


class TestFourier(FourierSwept):
    pass


class TestCenteredFourier(FourierSwept):
    centered = True


class TestStoredFourier(FourierSuite):
    def bare(self, points):
        return FeatureGram(self.features(points), points)

    def test_curvature_is_the_weight_of_a_points_own_code(self):
        assert self.make().sums(self.block()).curvature is None


class NystroemSuite(of_each(PAIRWISE), ApproximateSuite, MovingSuite):
    def landmarks(self):
        return draw(9, S, seed=8)

    def approximate(self, x, y, log_scale=0.0):
        return through_landmarks(self.chosen, self.landmarks(), x, y, log_scale)

    def bare(self, points):
        return FeatureGram(NystroemFeatures(self.chosen, self.landmarks().to(points)), points)

    def test_curvature_is_the_weight_of_a_points_own_code(self):
        assert self.make().sums(self.block()).curvature is None


class TestNystroem(NystroemSuite):
    pass


class TestCenteredNystroem(NystroemSuite):
    centered = True


def gram_error(kernel, approximation, X):
    exact = values(kernel, X, X)
    return float((approximation(X, X) - exact).norm() / exact.norm())


@pytest.mark.parametrize("kernel", PAIRWISE, ids=lambda kernel: kernel.describe())
@pytest.mark.parametrize("name", ["uniform", "kmeans", "rpcholesky"])
def test_nystroem_features_converge_to_the_kernel(kernel, name):
    X = draw(200, 2)
    errors = [gram_error(kernel, Nystroem(m, name).approximate(kernel, X, layer=1), X) for m in (5, 20, 80)]
    # A polynomial has ten features, so that twenty landmarks are enough for it.
    assert errors[0] > errors[1] > errors[2] or (errors[0] > 1e-3 and max(errors[1:]) <= 1e-12)


@pytest.mark.parametrize("kernel", STATIONARY, ids=lambda kernel: kernel.describe())
@pytest.mark.parametrize("m", [60, 1000])
def test_as_many_landmarks_as_samples_reproduce_the_kernel(kernel, m):
    X = draw(60, 3)
    assert gram_error(kernel, Nystroem(m).approximate(kernel, X, layer=1), X) <= 1e-9


@pytest.mark.parametrize("name", ["uniform", "rpcholesky"])
def test_what_nystroem_features_leave_out_is_positive_semidefinite(name):
    kernel, X = RBF(1.0), draw(100, 2)
    phi = Nystroem(15, name).approximate(kernel, X, layer=1).features(X)
    assert torch.linalg.eigvalsh(values(kernel, X, X) - phi @ phi.T)[0] >= -1e-10


def test_nystroem_features_are_sound_in_float32_where_the_kernel_matrix_is_singular_to_rounding():
    kernel, X = RBF(50.0), draw(300, 2)
    features = Nystroem(200).approximate(kernel, X.float(), layer=1)
    assert features.count < 200
    assert gram_error(kernel, lambda x, y: features(x.float(), y.float()).double(), X) <= 1e-5


def clustered(rng):
    """Return one large cluster, and twenty small ones far from it and from each other."""
    centres = np.concatenate([np.zeros((1, 2)), 30 * rng.standard_normal((20, 2))])
    sizes = [480, *([4] * 20)]
    return torch.from_numpy(np.repeat(centres, sizes, axis=0) + 0.1 * rng.standard_normal((560, 2)))


def test_pivoted_landmarks_find_small_groups_that_uniform_ones_miss():
    X = clustered(np.random.default_rng(0))
    errors = {
        name: np.mean(
            [Nystroem(25, name, random_state=seed).approximate(RBF(1.0), X, layer=1).error(X) for seed in range(5)]
        )
        for name in ("uniform", "kmeans", "rpcholesky")
    }
    assert errors["rpcholesky"] <= 0.02
    assert errors["rpcholesky"] < 0.5 * errors["uniform"]
    assert errors["kmeans"] < errors["uniform"]


def test_pivots_are_distinct_and_stop_when_nothing_is_left():
    X = draw(40, 2)
    chosen = pivots(RBF(1.0), X, 30, np.random.default_rng(0))
    assert len(set(chosen.tolist())) == len(chosen) == 30
    repeated = draw(6, 2).repeat(20, 1)
    assert len(pivots(RBF(1.0), repeated, 30, np.random.default_rng(0))) == 6


def test_pivots_are_drawn_like_those_of_the_plain_algorithm():
    X = torch.tensor([[0.0], [0.1], [3.0]], dtype=torch.float64)
    K = values(RBF(1.0), X, X)
    second = np.zeros((3, 3))
    for seed in range(3000):
        i, j = pivots(RBF(1.0), X, 2, np.random.default_rng(seed)).tolist()
        second[i, j] += 1
    for i in range(3):
        left = (K.diagonal() - K[:, i] ** 2 / K[i, i]).clamp(min=0)
        left[i] = 0
        expected = (left / left.sum()).numpy()
        np.testing.assert_allclose(second[i] / second[i].sum(), expected, atol=0.05)


@pytest.mark.parametrize("name", ["uniform", "kmeans", "rpcholesky"])
def test_landmarks_depend_on_the_random_state_alone(name):
    X = draw(100, 3)
    first, again, other = (choose_landmarks(name, RBF(1.0), X, 10, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("kernel", STATIONARY, ids=lambda kernel: kernel.describe())
@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("inputs", [1, 3, 40])
def test_the_mean_over_many_frequencies_is_the_kernel(kernel, orthogonal, inputs):
    count = 20_000
    x, y = draw(5, inputs, seed=1) / inputs**0.5, draw(6, inputs, seed=2) / inputs**0.5
    found = FourierFeatures(kernel, frequencies(kernel, inputs, count, orthogonal))(x, y)
    # A cosine has a variance of at most 1: five standard errors.
    assert (found - values(kernel, x, y)).abs().max() <= 5 / math.sqrt(count)


@pytest.mark.parametrize(("inputs", "count"), [(1, 100), (3, 1), (3, 100_000), (40, 130)])
def test_frequencies_are_those_of_blocks_that_are_drawn_one_by_one(inputs, count):
    # Files hold only the seed, so that no version may draw others.
    rng = np.random.default_rng(5)
    lengths, rows = np.linalg.norm(rng.standard_normal((count, inputs)), axis=1), []
    while len(rows) < count:
        Q, R = np.linalg.qr(rng.standard_normal((inputs, min(inputs, count - len(rows)))))
        rows.extend((Q * np.sign(np.diagonal(R))).T)
    np.testing.assert_array_equal(frequencies(RBF(1.0), inputs, count, seed=5).T, np.array(rows) * lengths[:, None])


@pytest.mark.parametrize("inputs", [1, 2, 40])
def test_drawing_frequencies_needs_the_memory_that_is_asked_for(inputs):
    tracemalloc.start()
    frequencies(Laplacian(1.0), inputs, 400_000 // inputs)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Besides the numbers, the blocks that are orthogonalised together.
    assert taken <= DRAWING * 400_000 + 5 * 8 * TOGETHER


def test_more_frequencies_than_a_file_may_ask_for_are_refused():
    assert Fourier(2 * 10**7).features == 2 * 10**7
    with pytest.raises(ValueError, match="features: expected an integer from 2 to 20000000, got 20000001"):
        Fourier(2 * 10**7 + 1)


def test_orthogonal_frequencies_have_the_smaller_error():
    kernel, X = RBF(1.0), draw(100, 8) / 8**0.5
    errors = {
        orthogonal: np.mean(
            [
                gram_error(kernel, FourierFeatures(kernel, frequencies(kernel, 8, 64, orthogonal, seed)), X)
                for seed in range(10)
            ]
        )
        for orthogonal in (True, False)
    }
    assert errors[True] < 0.8 * errors[False]


@pytest.mark.parametrize("make", [
    lambda: FourierFeatures(Matern(2.5, 2.0), frequencies(Matern(2.5, 2.0))),
    lambda: NystroemFeatures(RBF(2.0), draw(9, S, seed=8)),
    lambda: NystroemFeatures(Polynomial(3, 0.3, 0.7), draw(9, S, seed=8)),
], ids=["fourier", "nystroem", "nystroem of a polynomial"])  # fmt: skip
def test_the_pullback_is_that_of_the_features(make):
    kernel, x = make(), draw(7, S)
    V = draw(7, kernel.count, seed=1)
    expected = torch.func.vjp(kernel.features, x)[1](V)[0]
    torch.testing.assert_close(kernel.pullback(x)(V), expected, rtol=1e-9, atol=1e-10)


def test_another_width_keeps_frequencies_and_landmarks():
    omega, Z, x = frequencies(RBF(1.0)), draw(9, S, seed=8), draw(7, S)
    wider = FourierFeatures(RBF(1.0), omega).with_parameters(sigma2=4.0)
    torch.testing.assert_close(wider(x, x), mean_of_cosines(RBF(4.0), omega, x, x))
    wider = NystroemFeatures(RBF(1.0), Z).with_parameters(sigma2=4.0)
    torch.testing.assert_close(wider(x, x), through_landmarks(RBF(4.0), Z, x, x))


@pytest.mark.parametrize("center", [False, True])
def test_the_coupling_of_fourier_features_has_the_expansion_of_automatic_derivatives(center):
    U, A, u, h = draw(30, S), draw(30, 2, seed=1), draw(4, S, seed=2), draw(4, 2, seed=3)
    kernel = FourierFeatures(RBF(2.0), frequencies(RBF(2.0)))
    closed, automatic = FourierCoupling(kernel, U, A, center), ExplicitCoupling(kernel, U, A, center)
    for found, expected in zip(closed.expand(u, h), automatic.expand(u, h), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_a_gradient_forms_nothing_larger_than_the_features(center):
    n, m = 1500, 40
    X = draw(n, 4)
    strategy = Nystroem(m, deep=Fourier(m))
    kernels = [strategy.approximate(RBF(1.0), points, layer=k) for k, points in ((1, X), (2, X[:, :3]))]
    H = torch.linalg.qr(draw(n, 5, seed=1))[0]
    with LargestTensor() as seen:
        energy = Energy(X, kernels, (3, 2), (1.0, 1.0), strategy, center)
        energy.value_and_gradient(H)
        energy.hessian(H)(H)
    assert 0 < seen.entries <= n * m


def test_a_widened_energy_keeps_the_frequencies():
    X, strategy = draw(50, 4), Fourier(20)
    kernels = [strategy.approximate(RBF(sigma2), X[:, :2], layer=k) for k, sigma2 in ((1, 1.0), (2, 1e-3))]
    energy = Energy(X[:, :2], kernels, (2, 2), (1.0, 1.0), strategy)
    assert energy.relative_widths() == [pytest.approx(1e-3 * 50 / 4)]
    wider = energy.widened()
    assert wider.kernels[1].sigma2 == pytest.approx(4 / 50)
    assert wider.kernels[1].frequencies is kernels[1].frequencies


class TestStrategies:
    @pytest.mark.parametrize(("name", "kind"), [("nystroem", Nystroem), ("fourier", Fourier)])
    def test_have_names(self, name, kind):
        assert grams.by_name(name) == kind()

    def test_keep_kernels_that_have_features(self):
        for strategy in (Nystroem(5), Fourier(10)):
            assert strategy.approximate(Linear(), draw(20, 3), layer=1) == Linear()

    def test_an_exact_deep_strategy_leaves_the_deep_kernel(self):
        strategy = Nystroem(5, deep=Dense())
        assert strategy.approximate(RBF(1.0), draw(20, 3), layer=2) == RBF(1.0)
        assert isinstance(strategy.moving(RBF(1.0), draw(20, 3)), SweptGram)

    def test_dense_sweeps_fourier_features(self):
        """Models from a file have no other strategy."""
        kernel = FourierFeatures(RBF(1.0), frequencies(RBF(1.0)))
        assert isinstance(Dense().moving(kernel, draw(20, S)), FourierGram)
        assert isinstance(Centered(Dense().fixed(kernel, draw(20, S))).gram, FeatureGram)

    @pytest.mark.parametrize(("make", "message"), [
        (lambda: Nystroem(0), "m: expected an integer of at least 1, got 0"),
        (lambda: Nystroem(2.5), "m: expected an integer of at least 1, got 2.5"),
        (lambda: Nystroem(5, "farthest"), "landmarks: got 'farthest', allowed are uniform, kmeans, rpcholesky"),
        (lambda: Nystroem(5, deep="fourier"), "deep: expected a drkm.gram object, got 'fourier'"),
        (lambda: Nystroem(5, random_state=-1), "random_state: expected an integer of at least 0, got -1"),
        (lambda: Fourier(1), "features: expected an integer of at least 2, got 1"),
        (lambda: Fourier(True), "features: expected an integer of at least 2, got True"),
    ])  # fmt: skip
    def test_refuse_wrong_parameters(self, make, message):
        with pytest.raises((ValueError, TypeError)) as caught:
            make()
        assert str(caught.value) == message

    def test_refuse_kernels_that_they_cannot_approximate(self):
        with pytest.raises(ValueError, match=r"gram: Fourier features need a kernel of distances .* got Polynomial"):
            Fourier().approximate(Polynomial(), draw(20, 3), layer=2)
        with pytest.raises(ValueError, match=r"gram: Nyström features need a kernel .* got Precomputed"):
            Nystroem().approximate(Precomputed(), draw(20, 20), layer=1)


def test_long_sums_in_float32_are_those_of_float64(monkeypatch):
    A, phi = draw(1000, 3), draw(1000, 7, seed=1)
    monkeypatch.setattr(features_module, "SUM_ROWS", 64)
    found = features_module.inner(A.float(), phi.float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), A.T @ phi, rtol=1e-5, atol=1e-5)
