"""KernelPCA in float32, and with numbers that are tiny, huge, equal or far from zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import KernelPCA as Theirs

from drkm import ConstrDRKM, KernelPCA
from drkm.gram import Nystroem
from drkm.kernels import RBF, FeatureMap, Laplacian, Linear, Matern, Polynomial


def samples(n, d=6, seed=0):
    return np.random.RandomState(seed).randn(n, d) * np.arange(1, d + 1)


@pytest.mark.parametrize("parameters", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "gamma": 0.0}], ids=str)
def test_equal_samples_have_zero_codes(parameters):
    X = np.ones((300, 40)) if "gamma" not in parameters else samples(300)
    assert not KernelPCA(2, **parameters).fit_transform(X).any()
    assert KernelPCA(2, remove_zero_eig=True, **parameters).fit_transform(X).shape == (300, 0)


def test_equal_samples_have_zero_eigenvalues_whatever_the_start_of_the_search():
    # One start in a hundred led to an eigenvalue of rounding, or to a search that began with zeros.
    X = np.ones((300, 40))
    values = [KernelPCA(2, kernel="rbf", random_state=seed).fit(X).eigenvalues_ for seed in range(300)]
    assert not np.any(values)


def test_rounding_of_equal_samples_is_no_component():
    X = np.tile(samples(1, 5), (300, 1))
    assert KernelPCA(2, kernel="cosine", remove_zero_eig=True).fit(X).eigenvalues_.shape == (0,)
    many = np.full((3000, 3), 0.1, dtype=np.float32)
    assert KernelPCA(2, remove_zero_eig=True).fit(many).eigenvalues_.shape == (0,)


@pytest.mark.parametrize("gram", ["dense", "tiled"])
def test_a_kink_does_not_magnify_rounding_in_float32(gram):
    X = np.random.default_rng(0).standard_normal((300, 40))
    expected = KernelPCA(2, kernel=Laplacian(1.0)).fit(X).eigenvalues_
    model = KernelPCA(2, kernel=Laplacian(1.0), gram=gram)
    codes = model.fit_transform(X.astype(np.float32))
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-5)
    np.testing.assert_allclose(model.transform(X.astype(np.float32)), codes, atol=1e-4)
    layer = ConstrDRKM(2, kernel=Laplacian(1.0), center=True, dtype="float32", gram=gram).fit(X)
    np.testing.assert_allclose(layer.eigenvalues_[0], expected, rtol=1e-5)
    np.testing.assert_allclose(layer.transform(X), layer.codes_, atol=1e-6)


def distant_groups():
    r = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [3000.0, 0.0], [0.0, 3000.0]])
    return (centres[r.integers(0, 3, 200)] + r.standard_normal((200, 2))).astype(np.float32)


@pytest.mark.parametrize("gram", ["auto", "tiled"])
def test_distances_that_float32_would_round_away_are_those_of_scikit_learn(gram):
    X = distant_groups()
    ours = KernelPCA(2, kernel="rbf", gamma=0.5, gram=gram).fit(X)
    theirs = Theirs(2, kernel="rbf", gamma=0.5).fit(X.astype(np.float64))
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-5)
    expected = theirs.transform(X[:9].astype(np.float64) + 0.5)
    np.testing.assert_allclose(np.abs(ours.transform(X[:9] + np.float32(0.5))), np.abs(expected), atol=1e-4)
    results = (ours.X_fit_, ours.eigenvalues_, ours.eigenvectors_, ours.transform(X))
    assert {part.dtype for part in results} == {np.dtype(np.float32)}


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("given", [{"gamma": None}, {"gamma": 0.01}, {"kernel": RBF(20.0)}], ids=str)
def test_columns_in_different_units_have_codes_as_exact_in_float32_as_those_of_scikit_learn(load, given):
    X = load().data.astype(np.float32)
    gamma = given.get("gamma", 1 / 40)
    expected, theirs = (Theirs(5, kernel="rbf", gamma=gamma).fit(Z).transform(Z) for Z in (X.astype(float), X))
    found = KernelPCA(5, **{"kernel": "rbf", **given}).fit(X).transform(X)

    def error(codes):
        return (np.abs(np.abs(codes) - np.abs(expected)) / np.abs(expected).max(axis=0)).max()

    assert error(found) <= max(1e-6, error(theirs))


@pytest.mark.parametrize("gram", ["auto", "tiled"])
@pytest.mark.parametrize("kernel", ["poly", Polynomial(2), "linear", Linear(), "cosine"], ids=str)
def test_products_that_centring_would_leave_nothing_of_in_float32_are_those_of_float64(kernel, gram):
    X = (samples(150, 4) * [4, 3, 2, 1] + 1e4).astype(np.float32)
    model = KernelPCA(2, kernel=kernel, degree=2, gram=gram)
    expected = model.fit(X.astype(np.float64)).transform(X.astype(np.float64))
    codes = model.fit(X).transform(X)
    size = np.abs(expected).max()
    np.testing.assert_allclose(np.abs(codes) / size, np.abs(expected) / size, atol=1e-5)
    assert {part.dtype for part in (codes, model.X_fit_, model.eigenvalues_)} == {np.dtype(np.float32)}
    # A precision that was asked for is kept.
    assert KernelPCA(2, kernel=kernel, gram=gram, dtype="float32").fit(X)._projection.weights.dtype == torch.float32


@pytest.mark.parametrize("n", [90, 800])
@pytest.mark.parametrize("kernel", ["rbf", RBF(5e6), Matern(2.5, 5e6)], ids=str)
def test_kernels_so_wide_that_float32_would_round_their_values_to_one_are_those_of_float64(kernel, n):
    X = np.random.default_rng(0).standard_normal((n, 4)).astype(np.float32)
    model = KernelPCA(3, kernel=kernel, gamma=1e-7 if kernel == "rbf" else None)
    expected = model.fit(X.astype(np.float64)).eigenvalues_
    assert (expected > 0).all()
    np.testing.assert_allclose(model.fit(X).eigenvalues_, expected, rtol=1e-5)
    assert model.transform(X).dtype == np.float32


def test_a_feature_map_keeps_the_precision_that_it_was_checked_in():
    X = (samples(150, 4) + 1e5).astype(np.float32)
    layer = torch.nn.Linear(4, 3)
    model = KernelPCA(2, kernel=FeatureMap(layer, normalize=False)).fit(X)
    assert model._projection.weights.dtype == torch.float32


@pytest.mark.parametrize("gram", ["auto", "tiled"])
@pytest.mark.parametrize(("n", "d"), [(300, 400), (20_000, 5)])
def test_features_are_centred_before_they_are_multiplied(n, d, gram):
    deviations = np.linspace(1, 0.005, d) if d < n else np.ones(d)
    X = (np.random.default_rng(0).standard_normal((n, d)) * deviations + 100).astype(np.float32)
    expected = np.linalg.svd(X - X.mean(axis=0, dtype=np.float64), full_matrices=False, compute_uv=False)[:5] ** 2
    model = KernelPCA(5, gram=gram)
    codes = model.fit_transform(X)
    assert model._projection.weights.dtype == torch.float32
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-4)
    np.testing.assert_allclose(model.transform(X), codes, atol=1e-3)


@pytest.mark.parametrize("solver", ["auto", "arpack"])
@pytest.mark.parametrize("scale", [np.float32(1e-13), np.float32(1e-7), np.float32(1e13), 1e-100, 1e-20, 1e100])
@pytest.mark.parametrize("d", [250, 400])
def test_eigenvalues_scale_with_the_units_of_the_samples(d, scale, solver):
    X = (np.random.default_rng(0).standard_normal((300, d)) * scale).astype(type(scale))
    model = KernelPCA(4, eigen_solver=solver).fit(X)
    values = X.astype(np.float64) / float(scale)
    expected = np.linalg.svd(values - values.mean(axis=0), full_matrices=False, compute_uv=False)[:4] ** 2
    np.testing.assert_allclose(model.eigenvalues_.astype(np.float64) / float(scale) ** 2, expected, rtol=1e-5)


@pytest.mark.parametrize("gram", ["auto", "tiled"])
def test_a_gamma_that_rounding_hides_is_refused(gram):
    wide = np.hstack([samples(90), 1e9 * samples(90, 1, seed=1)])
    with pytest.raises(
        ValueError, match=r"^gamma: 0\.143, so that sigma2 is 3\.5, is too narrow in float64 for samples"
    ):
        KernelPCA(2, kernel="rbf", gram=gram).fit(wide)
    with pytest.raises(ValueError, match=r'^gamma: 0\.5, .* in float32 .*, or take dtype="float64"$'):
        KernelPCA(2, kernel="rbf", gamma=0.5, gram=gram, dtype="float32").fit(distant_groups())


@pytest.mark.parametrize("n", [300, 1000, 3000])
@pytest.mark.parametrize("gamma", [3e-5, 5e-5, 1e-4])
def test_no_component_that_float32_can_tell_from_rounding_is_lost(gamma, n):
    # Eigenvalues fall by 4 from one to the next, down to 1e-5 of a kernel value per sample.
    X = (np.random.RandomState(0).randn(n, 4) * [1, 0.5, 0.25, 0.125]).astype(np.float32)
    expected = Theirs(4, kernel="rbf", gamma=gamma, random_state=0).fit(X.astype(np.float64)).eigenvalues_
    found = KernelPCA(4, kernel="rbf", gamma=gamma, random_state=0).fit(X).eigenvalues_
    np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.parametrize("kind", ["normal", "sorted", "blocks"])
@pytest.mark.parametrize("n", [300, 1000, 3000])
def test_what_rounding_leaves_beside_a_component_is_none(n, kind):
    # A single direction: the second eigenvalue is of the fourth power of the scale, far below rounding.
    x = np.random.RandomState(0).randn(n)
    x = {"normal": x, "sorted": np.sort(x), "blocks": np.repeat(x[:4], -(-n // 4))[:n]}[kind]
    for scale, dtype in ((4e-3, np.float32), (1e-6, np.float64)):
        X = (scale * x[:, None]).astype(dtype)
        model = KernelPCA(4, kernel="rbf", gamma=1.0, random_state=0, dtype=dtype.__name__).fit(X)
        assert model.eigenvalues_[0] > 0
        assert not model.eigenvalues_[1:].any()


@pytest.mark.parametrize(("scale", "degree", "coef0"), [(1e26, 3, 1), (1e-40, 3, 0), (1e-17, 9, 0)])
@pytest.mark.parametrize("gram", ["auto", "tiled"])
@pytest.mark.parametrize("n", [100, 300])
def test_kernel_values_whose_squares_vanish_or_overflow_have_the_components_of_others(n, gram, scale, degree, coef0):
    X = samples(n, 5)
    expected = KernelPCA(2, kernel="poly", degree=degree, coef0=0).fit(X).eigenvalues_
    model = KernelPCA(2, kernel="poly", degree=degree, coef0=coef0, gram=gram).fit(scale * X)
    np.testing.assert_allclose(model.eigenvalues_ / scale**degree / scale**degree, expected, rtol=1e-6)


def test_a_sum_of_squares_beyond_float64_is_not_known_and_not_needed():
    X = 4.15e75 * (1 + 1e-3 * np.random.RandomState(0).rand(1000, 1))
    values = KernelPCA(2, kernel="poly", degree=1, gamma=1, coef0=0).fit(X).eigenvalues_
    np.testing.assert_allclose(values, [((X - X.mean()) ** 2).sum(), 0], rtol=1e-9)


def test_a_sum_of_kernel_values_beyond_float32_does_not_make_them_infinite():
    X = (3e16 * (1 + np.random.RandomState(0).rand(1000, 1))).astype(np.float32)
    model = KernelPCA(1).fit(scipy.sparse.csr_matrix(X))
    assert model.eigenvalues_[0] == pytest.approx(((X - X.mean(dtype=np.float64)) ** 2).sum(), rel=1e-4)


@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky"])
def test_samples_that_are_all_zero_have_no_features_and_no_components(landmarks):
    model = KernelPCA(2, kernel="poly", coef0=0, gram=Nystroem(5, landmarks=landmarks)).fit(np.zeros((10, 3)))
    assert not model.eigenvalues_.any()
    assert not model.transform(np.zeros((4, 3))).any()


def test_equal_samples_have_no_component_whatever_gamma():
    for gamma in (1e-320, 1e308):
        assert not KernelPCA(2, kernel="rbf", gamma=gamma).fit(np.zeros((5, 2))).eigenvalues_.any()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, 3.3, 12.7])
@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("parameters", [{"kernel": "poly"}, {"kernel": "rbf"}], ids=str)
def test_all_components_of_equal_samples_are_none(parameters, n, value, kind):
    model = KernelPCA(**parameters).fit(np.full((n, 3), value, dtype=kind))
    assert model.eigenvalues_.shape == (0,)


@pytest.mark.parametrize("seed", [0, 2])
def test_the_dense_solver_finds_no_more_components_than_the_rank(seed):
    X = np.random.RandomState(seed).randn(1000, 5) * 0.3 + 10
    model = KernelPCA(200, kernel="poly", degree=2, eigen_solver="dense").fit(X)
    # Monomials of degrees 1 and 2 in five variables.
    assert (model.eigenvalues_ > 0).sum() == 20
