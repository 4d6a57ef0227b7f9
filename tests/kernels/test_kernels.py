from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from kernel_suite import IsotropicSuite, KernelSuite, PairwiseSuite, X, Y
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise

from dense_oracle import draw, network, waves
from drkm import kernels
from drkm.kernels import RBF, Cosine, FeatureMap, Laplacian, Linear, Matern, Polynomial, Precomputed


class TestRBF(IsotropicSuite):
    def make(self):
        return RBF(1.7)

    def oracle(self, x, y):
        return pairwise.rbf_kernel(x, y, gamma=1 / (2 * 1.7))


class TestLaplacian(IsotropicSuite):
    def make(self):
        return Laplacian(1.7)

    def oracle(self, x, y):
        return gaussian_process.Matern(length_scale=np.sqrt(1.7), nu=0.5)(x, y)


class TestMatern32(IsotropicSuite):
    bad: ClassVar = [
        *[({"nu": 1.5, **parameters}, error, words) for parameters, error, words in IsotropicSuite.bad],
        ({"nu": 2.0}, ValueError, ["nu", "2.0", "1.5 and 2.5"]),
        ({"nu": "rough"}, ValueError, ["nu", "'rough'", "1.5 and 2.5"]),
    ]

    def make(self):
        return Matern(1.5, 1.7)

    def oracle(self, x, y):
        return gaussian_process.Matern(length_scale=np.sqrt(1.7), nu=1.5)(x, y)


class TestMatern52(TestMatern32):
    def make(self):
        return Matern(2.5, 1.7)

    def oracle(self, x, y):
        return gaussian_process.Matern(length_scale=np.sqrt(1.7), nu=2.5)(x, y)


class TestLinear(KernelSuite):
    def make(self):
        return Linear()

    def oracle(self, x, y):
        return pairwise.linear_kernel(x, y)


class TestCosine(KernelSuite):
    def make(self):
        return Cosine()

    def oracle(self, x, y):
        return pairwise.cosine_similarity(x, y)

    def test_a_zero_vector_has_value_zero_with_everything(self):
        x = torch.cat([torch.zeros(1, 3).double(), X])
        assert torch.equal(self.make()(x, Y)[0], torch.zeros(len(Y)).double())
        assert torch.equal(self.make()(x, x)[0], torch.zeros(len(x)).double())

    def test_a_zero_vector_has_a_finite_gradient(self):
        x = torch.zeros(2, 3).double()
        assert torch.isfinite(self.make().pullback(x)(torch.ones(2, 3).double())).all()

    def test_tiny_vectors_have_the_values_and_gradients_of_their_direction(self):
        x, v, tiny = X.float(), draw(*X.shape).float(), 1e-30
        torch.testing.assert_close(self.make()(tiny * x, x), self.make()(x, x))
        torch.testing.assert_close(tiny * self.make().pullback(tiny * x)(v), self.make().pullback(x)(v))


class TestPolynomial(PairwiseSuite):
    bad: ClassVar = [
        ({"degree": 0}, ValueError, ["degree", "0", "at least 1"]),
        ({"degree": 2.5}, ValueError, ["degree", "2.5", "integer"]),
        ({"degree": True}, ValueError, ["degree", "True", "integer"]),
        ({"gamma": -1.0}, ValueError, ["gamma", "-1.0", "positive", "scale"]),
        ({"gamma": float("nan")}, ValueError, ["gamma", "nan", "positive"]),
        ({"gamma": "auto"}, ValueError, ["gamma", "'auto'", "scale"]),
        ({"offset": -0.5}, ValueError, ["offset", "-0.5", "at least 0"]),
        ({"offset": float("inf")}, ValueError, ["offset", "inf"]),
    ]

    def make(self):
        return Polynomial(3, 0.4, 0.8)

    def oracle(self, x, y):
        return pairwise.polynomial_kernel(x, y, degree=3, gamma=0.4, coef0=0.8)

    @pytest.mark.parametrize("degree", [1, 2, 5])
    def test_other_degrees_equal_the_oracle(self, degree):
        found = Polynomial(degree, 0.4, 0.8)(X, Y)
        expected = pairwise.polynomial_kernel(X.numpy(), Y.numpy(), degree=degree, gamma=0.4, coef0=0.8)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-12)

    @pytest.mark.parametrize("degree", [1, 2, 4, 6])
    def test_derivatives_of_other_degrees_are_those_of_the_power(self, degree):
        e = draw(5, 4, seed=4)
        found = Polynomial(degree, 1.0, 0.0).jet(e.clone(), 2, [torch.empty_like(e) for _ in range(2)])
        for k, part in enumerate(found):
            polynomial = np.polynomial.Polynomial([0.0] * degree + [1.0])
            expected = polynomial.deriv(k)(e.numpy()) if k else polynomial(e.numpy())
            np.testing.assert_allclose(part.numpy(), expected, rtol=1e-12, atol=1e-12)

    def test_a_line_has_slope_one_and_no_bend_even_at_zero(self):
        value, slope, bend = Polynomial(1, 1.0, 0.0).jet(torch.tensor([-1.0, 0.0, 2.0]).double(), 2)
        assert value.tolist() == [-1.0, 0.0, 2.0]
        assert slope.tolist() == [1.0, 1.0, 1.0]
        assert bend.tolist() == [0.0, 0.0, 0.0]

    def test_scale_rule_is_one_over_the_mean_squared_length(self):
        kernel = Polynomial(2, "scale").resolve(X, layer=1)
        assert kernel.gamma == pytest.approx(1 / np.mean(np.sum(X.numpy() ** 2, axis=1)), rel=1e-12)

    def test_scale_rule_above_the_first_layer_is_n_over_the_size(self):
        H = torch.linalg.qr(draw(40, 5))[0]
        assert Polynomial(2, "scale").resolve(H, layer=2).gamma == pytest.approx(8.0, rel=1e-12)

    def test_scale_rule_gives_a_number_for_zero_data(self):
        assert Polynomial(2, "scale").resolve(torch.zeros(4, 2).double(), layer=1).gamma > 0


class FeatureMapSuite(KernelSuite):
    bad: ClassVar = [
        ({"map": 3}, TypeError, ["map", "int", "callable"]),
        ({"map": waves, "trainable": True}, TypeError, ["trainable", "torch.nn.Module"]),
        ({"map": network(), "trainable": True, "normalize": False}, ValueError, ["normalize", "False", "normalised"]),
    ]

    def test_pullback_is_the_transposed_jacobian(self):
        kernel = self.make()
        V = draw(len(X), kernel.features(X).shape[1], seed=5)
        x = X.clone().requires_grad_()
        (expected,) = torch.autograd.grad((kernel.features(x) * V).sum(), x)
        torch.testing.assert_close(kernel.pullback(X)(V), expected)


class TestFeatureMapOfAFunction(FeatureMapSuite):
    def make(self):
        return FeatureMap(waves, normalize=False)

    def oracle(self, x, y):
        phi, psi = (waves(torch.from_numpy(z)).numpy() for z in (x, y))
        return phi @ psi.T

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            (lambda x: x.sum(), r"must return a tensor of 23×D values, got \(\)"),
            (lambda x: x[:3], r"must return a tensor of 23×D values, got \(3, 3\)"),
            (lambda x: x.numpy(), "must return a tensor of 23×D values, got ndarray"),
            (lambda x: x * float("nan"), "layer 2 returns NaN or inf"),
        ],
    )
    def test_a_map_of_the_wrong_shape_or_with_nan_is_refused(self, wrong, words):
        with pytest.raises(ValueError, match=words):
            FeatureMap(wrong).resolve(X, layer=2)


class TestNormalisedFeatureMapOfAFunction(FeatureMapSuite):
    def make(self):
        return FeatureMap(waves)

    def oracle(self, x, y):
        return pairwise.cosine_similarity(*(waves(torch.from_numpy(z)).numpy() for z in (x, y)))


class TestFeatureMapOfAModule(FeatureMapSuite):
    def make(self):
        return FeatureMap(network().requires_grad_(False), trainable=True)

    def oracle(self, x, y):
        with torch.no_grad():
            phi, psi = (network()(torch.from_numpy(z)).numpy() for z in (x, y))
        return pairwise.cosine_similarity(phi, psi)

    def test_float32_values_are_right_to_float32(self):
        kernel = self.make().resolve(X.float(), layer=1)
        torch.testing.assert_close(kernel(X.float(), Y.float()).double(), self.make()(X, Y), rtol=1e-5, atol=1e-6)

    def test_resolving_copies_the_module_so_that_training_leaves_the_callers_alone(self):
        kernel = self.make()
        copy = kernel.resolve(X, layer=1)
        assert copy.map is not kernel.map
        with torch.no_grad():
            copy.module_parameters()[0].add_(1.0)
        assert not torch.equal(copy.module_parameters()[0], kernel.module_parameters()[0])


K = X @ X.T


class TestPrecomputed:
    def test_the_input_is_the_gram_matrix(self):
        assert torch.equal(Precomputed()(K, K), K)
        assert torch.equal(Precomputed().diagonal(K), K.diagonal())

    def test_a_gram_matrix_resolves_to_the_kernel_itself(self):
        assert Precomputed().resolve(K, layer=1) == Precomputed()

    def test_a_matrix_that_is_not_square_is_refused(self):
        with pytest.raises(ValueError, match="X: a precomputed Gram matrix must be square, got 5×23"):
            Precomputed().resolve(K[:5], layer=1)

    def test_an_asymmetric_matrix_is_refused(self):
        wrong = K.clone()
        wrong[0, 1] += 1.0
        with pytest.raises(ValueError, match=r"X: a precomputed Gram matrix must be symmetric, got .* differ by 1"):
            Precomputed().resolve(wrong, layer=1)

    def test_asymmetry_of_rounding_is_forgiven(self):
        Precomputed().resolve(K * (1 + 1e-9 * draw(*K.shape)), layer=1)

    def test_above_the_first_layer_is_refused(self):
        with pytest.raises(ValueError, match="belongs in layer 1, got it in layer 2: name one kernel per layer"):
            Precomputed().resolve(K, layer=2)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "matern", "linear", "polynomial", "cosine", "precomputed"])
def test_every_name_gives_a_kernel(name):
    assert type(kernels.by_name(name)).__name__.lower() == name


def test_an_unknown_name_lists_the_allowed_ones():
    with pytest.raises(ValueError, match=r"kernel: unknown name 'gauss', allowed are rbf, laplacian, matern"):
        kernels.by_name("gauss")


@pytest.mark.parametrize(
    "number", [np.float64(2), np.float32(2), np.int64(2)], ids=lambda number: type(number).__name__
)
def test_numpy_numbers_are_numbers(number):
    assert RBF(number).sigma2 == 2.0
    assert Polynomial(gamma=number).gamma == 2.0


def test_a_numpy_integer_is_a_degree():
    assert Polynomial(np.int64(2)).degree == 2
