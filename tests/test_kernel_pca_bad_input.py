"""KernelPCA with bad input: errors that name what is wrong, and no traces of a failed fit."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

from drkm import AnomalyDetector, Imputer, KernelPCA, denoise, kernels, select
from versions import skip_before

X = np.random.RandomState(0).randn(40, 4)


def broken(x, y):
    raise ZeroDivisionError


FAILING = [
    {"kernel": broken},
    {"kernel": "linear", "alpha": 0.0},
    {"kernel": "sigmoid", "gamma": 5.0, "n_components": 20},
]


@pytest.mark.parametrize("spoiled", FAILING, ids=["function", "regression", "eigenvalues"])
def test_a_fit_that_fails_leaves_the_model_as_it_was(spoiled):
    model = KernelPCA(2, kernel="sigmoid", gamma=None, fit_inverse_transform=True).fit(X / 10)
    codes = model.transform(X)
    points = model.inverse_transform(codes)
    before = model.get_params()
    with pytest.raises((ZeroDivisionError, ValueError)):
        model.set_params(**spoiled).fit(X[:, :3])
    model.set_params(**before)
    assert model.gamma_ == 1 / 4
    assert model.transform(X).tobytes() == codes.tobytes()
    assert model.inverse_transform(codes).tobytes() == points.tobytes()


def test_a_first_fit_that_fails_leaves_a_model_that_is_not_fitted():
    model = KernelPCA(2, alpha=0.0, fit_inverse_transform=True)
    with pytest.raises(np.linalg.LinAlgError, match=r"^alpha: with 0.0 the regression .* singular"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
def test_what_is_set_after_a_fit_is_for_the_next_one(name):
    model = KernelPCA(2, kernel=name, gamma=0.01, fit_inverse_transform=True).fit(X)
    codes = model.transform(X)
    points = model.inverse_transform(codes)
    model.set_params(kernel="linear", gamma=3.0, degree=7, coef0=2.0)
    assert model.inverse_transform(codes).tobytes() == points.tobytes()


@pytest.mark.parametrize("parameters", [{"preimage": "gradient"}, {"preimage": "fixed-point"}, {"preimage": "ridge"}])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda Z: Z[0], "expected m×3 codes, got 3$"),
        (lambda Z: Z[:, :2], "expected m×3 codes, got 40×2$"),
        (lambda Z: np.hstack([Z, Z]), "expected m×3 codes, got 40×6$"),
        (lambda Z: Z * np.nan, "contains NaN or infinity$"),
        (lambda Z: Z * np.inf, "contains NaN or infinity$"),
    ],
    ids=["one", "narrow", "wide", "nan", "inf"],
)
def test_codes_that_are_none_are_refused(parameters, spoil, words):
    model = KernelPCA(3, kernel="rbf", **parameters).fit(X)
    with pytest.raises(ValueError, match=f"^X: {words}"):
        model.inverse_transform(spoil(model.transform(X)))


def test_masked_entries_and_dates_are_no_numbers():
    model = KernelPCA(2).fit(X)
    masked = np.ma.array(X, mask=X > 1)
    for method in (KernelPCA(2).fit, model.transform):
        with pytest.raises(ValueError, match=r"^X: contains masked values"):
            method(masked)
    with pytest.raises(ValueError, match=r"^X: expected numbers, got dates or times"):
        KernelPCA(2).fit(np.full((5, 2), "2020-01-01", dtype="datetime64[D]"))


@pytest.mark.parametrize(
    ("entry", "words"),
    [("x", "text like 'x'"), ("2.5", "text like '2.5'"), (np.datetime64("2020-01-01"), "dates or times")],
)
def test_columns_of_a_frame_that_are_no_numbers_are_named(entry, words):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(c=entry, b=X[:, 1] > 0)
    for method in (KernelPCA(2).fit, Imputer().fit, AnomalyDetector().fit):
        with pytest.raises(ValueError, match=f"^X: expected numbers, got {words} in column 'c'$"):
            method(frame)
    for function in (select, denoise):
        with pytest.raises(TypeError, match=f"^X: expected real numbers, got {words} in column 'c'$"):
            function(frame)


@pytest.mark.skipif(**skip_before("scikit-learn", "1.9"))
def test_columns_of_one_name_are_refused_in_one_sentence():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "b", "c"])
    with pytest.raises(ValueError, match=r"^X: expected columns of different names, got 'b' 2 times$"):
        KernelPCA(2).fit(frame)


def test_a_model_of_dense_samples_takes_sparse_ones():
    for model in (KernelPCA(2, kernel="rbf"), KernelPCA(2, kernel="sigmoid", gamma=0.01)):
        codes = model.fit(X).transform(scipy.sparse.csc_matrix(X))
        np.testing.assert_allclose(codes, model.transform(X), atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernel": kernels.RBF}, r"kernel: expected an object, as RBF\(\), got the class"),
        ({"kernel": kernels.Precomputed()}, 'kernel: .*kernel="precomputed", got Precomputed'),
        (
            {"kernel": kernels.FeatureMap(torch.sin), "preimage": "ridge"},
            "kernel: a feature map has no values on codes",
        ),
        ({"kernel": lambda x, y: np.nan}, "kernel: .* NaN or infinite"),
        ({"kernel": "poly", "degree": 2.5}, "kernel: 'poly' .* NaN or infinite"),
        ({"kernel": lambda x, y: x @ y, "kernel_params": [1]}, r"kernel_params: .* got \[1\]"),
        ({"coef0": None}, "coef0: expected a number, got None"),
        ({"coef0": np.nan}, "coef0: expected a finite number, got nan"),
        ({"iterated_power": np.ones(2)}, "iterated_power: expected an integer"),
        ({"n_jobs": 0}, "n_jobs: .* got 0"),
        ({"n_jobs": True}, "n_jobs: .* got True"),
        ({"random_state": np.random}, "random_state: expected an integer from 0 .* got <module"),
        ({"kernel": "laplacian"}, "kernel: got 'laplacian', allowed are .*, and functions and drkm.kernels objects"),
        ({"kernel": kernels.RBF(2.0), "gamma": 5.0}, r"gamma: expected None .* got 5.0, set it in RBF\(sigma2=2.0\)"),
        ({"random_state": -1}, "random_state: expected an integer from 0 .* got -1"),
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_wrong_parameters_are_refused_by_name(parameters, words):
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        KernelPCA(2, **parameters).fit(X)


def test_codes_in_a_data_frame_with_its_columns_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    model = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    codes = pandas.DataFrame(model.transform(X), columns=model.get_feature_names_out())
    with pytest.raises(ValueError, match=r"^X: expected columns in the order of get_feature_names_out\(\), got"):
        model.inverse_transform(codes[codes.columns[::-1]])
    np.testing.assert_array_equal(model.inverse_transform(codes), model.inverse_transform(codes.to_numpy()))


def test_points_beyond_the_precision_are_refused():
    X = np.random.RandomState(0).randn(30, 3)
    model = KernelPCA(2, kernel="poly").fit(X)
    with pytest.raises(ValueError, match=r"^X: the kernel returns NaN or inf for 2 of these points$"):
        model.transform(np.vstack([X[:3], X[:2] * 1e200]))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize(("dtype", "scale"), [("float64", 1e160), ("float32", 1e25)])
def test_samples_beyond_the_precision_are_refused(kernel, dtype, scale):
    with pytest.raises(ValueError, match=f"^X: values of the kernel are beyond {dtype}: divide the data"):
        KernelPCA(2, kernel=kernel).fit((X * scale).astype(dtype))


def test_a_precomputed_matrix_is_square():
    with pytest.raises(ValueError, match=r'^X: expected a square matrix for kernel="precomputed", got 40×4$'):
        KernelPCA(2, kernel="precomputed").fit(X)


def test_a_precomputed_matrix_is_dense():
    with pytest.raises(TypeError, match=r"^X: expected dense data, got a sparse matrix"):
        KernelPCA(2, kernel="precomputed").fit(scipy.sparse.csr_matrix(X @ X.T))


def test_a_gamma_whose_bandwidth_is_infinite_gives_equal_kernel_values():
    codes = KernelPCA(2, kernel="rbf", gamma=1e-320).fit_transform(X)
    np.testing.assert_allclose(codes, 0, atol=1e-6)


def test_equal_samples_have_no_codes_to_learn_from():
    same = np.ones((20, 3))
    with pytest.raises(ValueError, match=r"^X: no component has a positive eigenvalue"):
        KernelPCA(kernel="rbf", fit_inverse_transform=True).fit(same)
    model = KernelPCA(2, kernel="rbf", preimage="gradient").fit(same)
    with pytest.raises(ValueError, match=r"^X: no component of the model has a positive eigenvalue"):
        model.inverse_transform(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("kernel", "got"), [("linear", "Linear"), ("poly", "Polynomial"), ("cosine", "Cosine"), ("sigmoid", "'sigmoid'")]
)
def test_a_preimage_that_the_kernel_has_not_is_refused_by_fit(kernel, got):
    with pytest.raises((TypeError, NotImplementedError), match=rf"^preimage: .fixed-point. needs .* got {got}; use"):
        KernelPCA(2, kernel=kernel, preimage="fixed-point").fit(X)


def test_a_preimage_that_is_set_after_the_fit_is_refused_if_the_kernel_has_it_not():
    model = KernelPCA(2).fit(X).set_params(preimage="fixed-point")
    with pytest.raises(TypeError, match=r'^preimage: "fixed-point" needs a kernel of distances .* got Linear'):
        model.inverse_transform(np.zeros((1, 2)))


def test_a_ridge_of_nystroem_features_has_the_kernel_of_the_samples():
    exact = KernelPCA(3, kernel=kernels.RBF(4.0), preimage="ridge").fit(X)
    model = KernelPCA(3, kernel=kernels.RBF(4.0), gram="nystroem", preimage="ridge").fit(X)
    codes = exact.transform(X)
    np.testing.assert_allclose(model.inverse_transform(codes), exact.inverse_transform(codes), atol=1e-6)


def test_kernel_values_on_codes_beyond_the_precision_are_refused():
    far = (1e4 + X).astype(np.float32)
    with pytest.raises(ValueError, match=r"^kernel: its values on codes are NaN or infinite, divide the data"):
        KernelPCA(2, kernel="poly", fit_inverse_transform=True).fit(far)
