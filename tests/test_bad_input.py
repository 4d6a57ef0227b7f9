"""Bad input is refused with one sentence that names the parameter, its value and what is allowed."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

from drkm import ConstrDRKM, load
from drkm.kernels import RBF, Laplacian, Matern, Polynomial
from drkm.problem.energy import Energy
from drkm.solvers import LBFGS, AugmentedLagrangian, Eigensolver, Penalty, ProjectedGradient, TrustRegion
from refusals import refused

X = np.random.RandomState(0).randn(30, 4)
GRAM = X @ X.T
NAN, INF = float("nan"), float("inf")


def with_entry(value: float) -> np.ndarray:
    changed = X.copy()
    changed[3, 1] = value
    return changed


@pytest.fixture(scope="module")
def model():
    return ConstrDRKM((3, 2)).fit(X)


BAD_SAMPLES = {
    "NaN": (with_entry(NAN), ValueError, ("X", "NaN", "fill them in")),
    "inf": (with_entry(INF), ValueError, ("X", "inf")),
    "-inf": (with_entry(-INF), ValueError, ("X", "inf")),
    "0 samples": (X[:0], ValueError, ("0 sample", "2")),
    "1 sample": (X[:1], ValueError, ("1 sample", "2")),
    "no features": (X[:, :0], ValueError, ("0 feature", "1")),
    "complex": (X + 1j, ValueError, ("complex",)),
    "text": ([["a", "b"], ["c", "d"], ["e", "f"]], ValueError, ("X", "'a'")),
    "numbers as text": (X.astype(str), ValueError, ("X", "numbers", "text like '1.764")),
    "objects with text": (np.where(X > 2, "2", X.astype(object)), ValueError, ("X", "numbers", "text like '2'")),
    "dates": (np.ones((5, 4), dtype="M8[D]"), ValueError, ("X", "numbers", "dates")),
    "1-d": (X[0], ValueError, ("1D", "2D")),
    "3-d": (np.ones((5, 3, 2)), ValueError, ("3", "2")),
    "frame of text": (pd.DataFrame({"a": ["x", "y", "z"]}), ValueError, ("X", "'x' in column 'a'")),
    "frame of numbers as text": (pd.DataFrame(X.astype(str)), ValueError, ("X", "numbers", "text")),
    "rows of other lengths": ([[1.0, 2.0], [3.0], [4.0]], ValueError, ("X", "one number for each sample")),
    "frame with dates": (
        pd.DataFrame({"a": pd.date_range("2020", periods=3), "b": 1.0}),
        ValueError,
        ("X", "times in column 'a'"),
    ),
    "masked": (np.ma.masked_array(X, X > 1), ValueError, ("X", "masked")),
    "records": (np.zeros(5, dtype=[("a", float), ("b", float)]), TypeError, ("X", "numbers")),
    "tensor with NaN": (torch.tensor(with_entry(NAN)), ValueError, ("X", "NaN")),
    "tensor with inf": (torch.tensor(with_entry(INF)), ValueError, ("X", "inf")),
    "tensor of 0 samples": (torch.tensor(X[:0]), ValueError, ("X", "2 samples", "got 0")),
    "tensor of 1 sample": (torch.tensor(X[:1]), ValueError, ("X", "2 samples", "got 1")),
    "tensor without features": (torch.tensor(X[:, :0]), ValueError, ("X", "0 features")),
    "complex tensor": (torch.tensor(X) + 1j, TypeError, ("X", "real", "complex")),
    "tensor without values": (torch.ones(5, 4, device="meta"), TypeError, ("X", "dense", "empty")),
    "3-d tensor": (torch.ones(5, 3, 2), ValueError, ("X", "2 dimensions", "got 3")),
    "1-d tensor": (torch.ones(5), ValueError, ("X", "2 dimensions", "got 1")),
}


@pytest.mark.parametrize("name", BAD_SAMPLES)
def test_bad_samples_are_refused_by_fit(name):
    samples, error, words = BAD_SAMPLES[name]
    refused(lambda: ConstrDRKM((3, 2)).fit(samples), error, *words)


@pytest.mark.parametrize("name", [name for name in BAD_SAMPLES if "1 sample" not in name])
def test_bad_samples_are_refused_after_fit(name, model):
    samples, error, words = BAD_SAMPLES[name]
    words = [word for word in words if not word.startswith("2")] if "0 samples" in name else words
    if name == "frame of text":
        samples = pd.DataFrame([["x"] * 4], columns=list("abcd"))
    if name == "text":
        samples = [["a"] * 4]
    for method in (model.transform, model.denoise, model.score, model.encode):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X has feature names")
            refused(lambda method=method: method(samples), error, *words)


def test_sparse_input_is_refused(model):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        tensors = [torch.tensor(X).to_sparse(), torch.tensor(X).to_sparse_csr()]
    for samples in (scipy.sparse.csr_matrix(X), scipy.sparse.coo_array(X), *tensors):
        refused(lambda samples=samples: ConstrDRKM((3, 2)).fit(samples), TypeError, "X", "sparse", "dense")
        refused(lambda samples=samples: model.transform(samples), TypeError, "X", "sparse", "dense")


LAYERS = "one per layer, 2 in all"
BAD_PARAMETERS = [
    ({"n_components": (20, 11)}, ValueError, ("31 components", "31 samples", "got 30")),
    ({"n_components": ()}, ValueError, ("at least one layer", "none")),
    ({"n_components": 0}, ValueError, ("at least 1", "got 0")),
    ({"n_components": (3, 0)}, ValueError, ("at least 1", "got 0")),
    ({"n_components": -1}, ValueError, ("at least 1", "got -1")),
    ({"n_components": 2.5}, TypeError, ("integer", "got 2.5")),
    ({"n_components": (2.5, 1)}, TypeError, ("integer", "got 2.5")),
    ({"n_components": "ten"}, TypeError, ("integer", "'ten'")),
    ({"n_components": True}, TypeError, ("integer", "True")),
    ({"n_components": None}, TypeError, ("integer", "None")),
    ({"n_components": {1, 2}}, TypeError, ("integer",)),
    ({"n_components": np.array(3)}, TypeError, ("integer", "array(3)")),
    ({"n_components": ((1, 2),)}, TypeError, ("integer", "(1, 2)")),
    ({"kernel": ["rbf"] * 3}, ValueError, (LAYERS, "got 3")),
    ({"kernel": ["rbf"]}, ValueError, (LAYERS, "got 1")),
    ({"kernel": []}, ValueError, (LAYERS, "got 0")),
    ({"kernel": "gauss"}, ValueError, ("'gauss'", "rbf", "laplacian", "matern", "linear", "polynomial", "cosine")),
    ({"kernel": ["rbf", "gauss"]}, ValueError, ("'gauss'", "rbf", "precomputed")),
    ({"kernel": 3}, TypeError, ("name", "drkm.kernels", "got 3")),
    ({"kernel": np.array("rbf")}, TypeError, ("name", "drkm.kernels", "array('rbf'")),
    ({"kernel": RBF}, TypeError, ("name", "drkm.kernels", "RBF")),
    ({"kernel": ["rbf", 3]}, TypeError, ("name", "drkm.kernels", "got 3")),
    ({"kernel": ["rbf", "precomputed"]}, ValueError, ("layer 1", "layer 2")),
    ({"eta": (1, 2, 3)}, ValueError, (LAYERS, "got 3")),
    ({"eta": -1}, ValueError, ("positive", "got -1")),
    ({"eta": 0}, ValueError, ("positive", "got 0")),
    ({"kernel": np.dot}, TypeError, ("pass a function as FeatureMap", "precomputed")),
    ({"kernel": ("rbf", np.dot)}, TypeError, ("pass a function as FeatureMap", "precomputed")),
    ({"eta": NAN}, ValueError, ("positive", "got nan")),
    ({"eta": (1, NAN)}, ValueError, ("positive", "got nan")),
    ({"eta": INF}, ValueError, ("positive", "got inf")),
    ({"eta": "a"}, TypeError, ("positive", "'a'")),
    ({"eta": (1, "a")}, TypeError, ("positive", "'a'")),
    ({"eta": None}, TypeError, ("positive", "None")),
    ({"eta": np.array(2.0)}, TypeError, ("positive", "array(2.)")),
    ({"lam": [1]}, ValueError, (LAYERS, "got 1")),
    ({"lam": -1}, ValueError, ("positive", "got -1")),
    ({"tol": -1e-3}, ValueError, ("at least 0", "-0.001")),
    ({"tol": NAN}, ValueError, ("at least 0", "nan")),
    ({"tol": "a"}, TypeError, ("at least 0", "'a'")),
    ({"max_iter": 0}, ValueError, ("at least 1", "got 0")),
    ({"max_iter": 1.5}, TypeError, ("integer", "got 1.5")),
    ({"max_seconds": -1}, ValueError, ("positive", "got -1")),
    ({"max_seconds": "a"}, TypeError, ("positive", "'a'")),
    ({"n_init": 0}, ValueError, ("at least 1", "got 0")),
    ({"solver": "newton"}, ValueError, ("'newton'", "auto", "lbfgs", "trust-region", "penalty")),
    ({"solver": 3}, TypeError, ("name", "got 3")),
    ({"solver": Penalty(lam=2.0)}, ValueError, ("Penalty has lam=(2.0, 2.0)", "lam=(1.0, 1.0)", "on the model only")),
    ({"solver": Penalty(lam=(1, 2, 3))}, ValueError, ("lam of Penalty", LAYERS, "got 3")),
    ({"solver": Penalty(lam="a")}, TypeError, ("lam of Penalty", "positive", "'a'")),
    ({"solver": Penalty(learn_bandwidth=True)}, ValueError, ("learn_bandwidth=True", "learn_bandwidth=False", "model")),
    ({"solver": Eigensolver()}, ValueError, ("Eigensolver", "one layer", "got 2 layers")),
    ({"axes": "pca"}, ValueError, ("'pca'", "ritz", "varimax", "ica", "None")),
    ({"axes": 3}, ValueError, ("got 3", "ritz")),
    ({"axes": np.array(["ritz", "ica"])}, ValueError, ("'ica'", "ritz", "None")),
    ({"verbose": "no"}, TypeError, ("integer of at least 0", "'no'")),
    ({"verbose": -1}, ValueError, ("integer of at least 0", "-1")),
    ({"encoder": "vae"}, ValueError, ("'vae'", "stationary", "projection")),
    ({"init": "pca"}, ValueError, ("'pca'", "kpca", "random", "orthogonal")),
    ({"init": np.ones((3, 3))}, ValueError, ("(30, 5)", "(3, 3)")),
    ({"init": torch.ones(2)}, ValueError, ("(30, 5)", "(2,)")),
    ({"init": np.full((30, 5), NAN)}, ValueError, ("NaN",)),
    ({"init": {}}, TypeError, ("kpca", "array")),
    ({"init": np.ones((30, 5)).astype(str)}, TypeError, ("real", "kpca", "array")),
    ({"init": np.ones((30, 5)) * 1j}, TypeError, ("real", "kpca", "array")),
    ({"init": torch.ones(30, 5) * 1j}, TypeError, ("complex", "kpca", "array")),
    ({"init": torch.ones(30, 5).to_sparse()}, TypeError, ("sparse", "kpca", "array")),
    ({"gram": "huge"}, ValueError, ("'huge'", "auto", "dense")),
    ({"gram": 3}, TypeError, ("name", "got 3")),
    ({"device": "tpu"}, ValueError, ("'tpu'", "auto", "cpu")),
    ({"device": "cuda:99"}, ValueError, ("'cuda:99'", "auto", "cpu")),
    ({"device": 3.5}, ValueError, ("3.5", "cpu")),
    ({"dtype": "float16"}, ValueError, ("'float16'", "float32", "float64")),
    ({"center": "yes"}, TypeError, ("'yes'", "True or False")),
    ({"learn_bandwidth": 1}, TypeError, ("got 1", "True or False")),
    ({"learn_bandwidth": True, "kernel": "cosine"}, ValueError, ("bandwidth", "True")),
    ({"callbacks": [3]}, TypeError, ("functions", "got 3")),
    ({"callbacks": 3}, TypeError, ("functions", "got 3")),
    ({"checkpoint": 3}, TypeError, ("path", "got 3")),
    ({"random_state": "a", "init": "random"}, ValueError, ("'a'",)),
    ({"random_state": "a"}, ValueError, ("'a'", "integer")),
    ({"random_state": True}, ValueError, ("True", "integer")),
    ({"device": "meta"}, ValueError, ("'meta'", "cpu")),
    ({"dtype": int}, ValueError, ("int", "float32", "float64")),
    ({"kernel": np.array(["rbf", "gauss"])}, ValueError, ("'gauss'", "rbf")),
    ({"random_state": -1, "init": "random"}, ValueError, ("-1", "an integer from 0 to 2**32 - 1")),
]


@pytest.mark.parametrize(
    ("chosen", "error", "words"), BAD_PARAMETERS, ids=[f"{next(iter(p[0]))}-{i}" for i, p in enumerate(BAD_PARAMETERS)]
)
def test_bad_parameters_are_refused_by_name(chosen, error, words):
    message = refused(lambda: ConstrDRKM(**{"n_components": (3, 2), **chosen}).fit(X), error, *words)
    assert message.startswith(f"{next(iter(chosen))}: ")


def test_a_wrong_parameter_is_not_an_error_before_fit():
    found = ConstrDRKM("ten", kernel=3, eta=-1).get_params()
    assert (found["n_components"], found["kernel"], found["eta"]) == ("ten", 3, -1)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: RBF(-1.0), ValueError, ("sigma2", "positive", "-1.0")),
        (lambda: RBF(NAN), ValueError, ("sigma2", "positive", "nan")),
        (lambda: RBF(0), ValueError, ("sigma2", "positive", "got 0")),
        (lambda: Matern(1.5, INF), ValueError, ("sigma2", "finite", "inf")),
        (lambda: Laplacian("big"), ValueError, ("sigma2", "'big'", "median", "scale", "positive")),
        (lambda: RBF(None), TypeError, ("sigma2", "None", "median", "scale")),
        (lambda: RBF(True), TypeError, ("sigma2", "True", "positive")),
        (lambda: Matern(2.0), ValueError, ("nu", "2.0", "1.5", "2.5")),
        (lambda: Polynomial(0), ValueError, ("degree", "got 0", "at least 1")),
        (lambda: LBFGS(memory="a"), TypeError, ("memory", "at least 1", "'a'")),
        (lambda: LBFGS(memory=0), ValueError, ("memory", "at least 1", "got 0")),
        (lambda: LBFGS(warmup="no"), TypeError, ("warmup", "True or False", "'no'")),
        (lambda: TrustRegion(max_inner=0), ValueError, ("max_inner", "at least 1", "got 0")),
        (lambda: ProjectedGradient(length=0.0), ValueError, ("length", "positive", "got 0.0")),
        (lambda: Penalty(growth=1.0), ValueError, ("growth", "above 1", "got 1.0")),
        (lambda: Penalty(mu=-1), ValueError, ("mu", "positive", "got -1")),
        (lambda: Penalty(outer=0), ValueError, ("outer", "at least 1", "got 0")),
        (lambda: Penalty(learn_bandwidth=1), TypeError, ("learn_bandwidth", "True or False", "got 1")),
        (lambda: AugmentedLagrangian(mu=NAN), ValueError, ("mu", "positive", "got nan")),
        (lambda: AugmentedLagrangian(inner=2.5), TypeError, ("inner", "integer", "got 2.5")),
        (lambda: Polynomial(2.5), ValueError, ("degree", "2.5", "integer")),
        (lambda: Polynomial(2, -1.0), ValueError, ("gamma", "-1.0", "positive", "scale")),
        (lambda: Polynomial(2, True), ValueError, ("gamma", "True", "positive", "scale")),
        (lambda: Polynomial(2, 1.0, True), ValueError, ("offset", "True", "at least 0")),
        (lambda: Polynomial(2, "x"), ValueError, ("gamma", "'x'", "positive", "scale")),
        (lambda: Polynomial(2, 1.0, -1), ValueError, ("offset", "-1", "at least 0")),
        (lambda: Polynomial(2, 1.0, "a"), (TypeError, ValueError), ("offset", "'a'", "at least 0")),
        (lambda: ConstrDRKM((3, 2), kernel=["rbf", RBF("median")]).fit(X), ValueError, ("sigma2", "median", "scale")),
    ],
)
def test_bad_kernel_parameters_are_refused(make, error, words):
    refused(make, error, *words)


@pytest.mark.parametrize("number", [np.float32(2), np.float64(2), np.int64(2), 2], ids=repr)
def test_bandwidths_may_be_any_kind_of_number(number):
    assert RBF(number) == RBF(2.0)
    assert isinstance(RBF(number).sigma2, float)
    Polynomial(2, number)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.transform(X),
        lambda m: m.encode(X),
        lambda m: m.denoise(X),
        lambda m: m.inverse_transform(X),
        lambda m: m.traverse(1, 0, [0.0]),
        lambda m: m.sample(2),
        lambda m: m.score(X),
        lambda m: m.summary(),
        lambda m: m.get_feature_names_out(),
        lambda m: m.save("never-written"),
    ],
)
def test_use_before_fit_is_refused(call):
    with pytest.raises(NotFittedError, match="ConstrDRKM instance is not fitted yet"):
        call(ConstrDRKM())


@pytest.mark.parametrize("convert", [np.asarray, torch.tensor], ids=["numpy", "torch"])
def test_wrong_number_of_features_is_refused(model, convert):
    for method in (model.transform, model.denoise, model.score):
        refused(lambda method=method: method(convert(X[:, :3])), ValueError, "X", "3 features", "4 features")


def test_other_feature_names_are_refused():
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = ConstrDRKM(2).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame.set_axis(list("efgh"), axis=1))


def test_precomputed_gram_matrices_are_checked():
    asymmetric = GRAM.copy()
    asymmetric[0, 1] += 1
    one = ConstrDRKM(3, kernel="precomputed")
    refused(lambda: one.fit(asymmetric), ValueError, "X", "precomputed", "symmetric", "differ by 1")
    refused(lambda: one.fit(GRAM[:, :20]), ValueError, "X", "precomputed", "square", "30×20")
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    for no_gram in (squares, -GRAM, -np.eye(30)):
        refused(lambda K=no_gram: one.fit(K), ValueError, "X", "precomputed", "positive semi-definite", "distances")
    one.fit(GRAM)
    # Like a sample at the mean after centring in single precision.
    rounded = GRAM.copy()
    rounded[0] = rounded[:, 0] = -1e-4
    one.fit(rounded)
    rounded[0, 1] = 1e-3
    refused(lambda: one.fit(rounded), ValueError, "X", "symmetric", "differ by 0.0011", "(X + X.T) / 2")
    refused(lambda: one.transform(GRAM[:, :20]), ValueError, "X", "20 features", "30 features")


@pytest.mark.parametrize("method", ["denoise", "score", "inverse_transform"])
def test_a_precomputed_kernel_has_no_pre_images(method):
    fitted = ConstrDRKM(3, kernel="precomputed").fit(GRAM)
    given = fitted.codes_ if method == "inverse_transform" else GRAM
    refused(lambda: getattr(fitted, method)(given), TypeError, "kernel", "precomputed", "pre-images")


def test_columns_of_codes_in_another_order_are_refused(model):
    names = model.get_feature_names_out()
    codes = pd.DataFrame(model.codes_, columns=names)
    refused(lambda: model.inverse_transform(codes[names[::-1]]), ValueError, "Z:", "order", "layer2_1")
    np.testing.assert_array_equal(model.inverse_transform(codes), model.inverse_transform(model.codes_))
    assert len(model.inverse_transform(codes.set_axis(list("abcde"), axis=1))) == 30


def test_numbers_of_bandwidths_are_counted():
    refused(lambda: ConstrDRKM.paper((3, 2), [50.0]), ValueError, "sigma2:", LAYERS, "got 1")
    assert ConstrDRKM.paper((3, 2), torch.tensor([50.0, 2.0])).sigma2 == [50.0, 2.0]
    assert ConstrDRKM.paper((3, 2), np.array(50.0)).sigma2 == [50.0, 50.0]


def test_fit_transform_takes_no_words_that_fit_does_not():
    with pytest.raises(TypeError, match="weights"):
        ConstrDRKM((3, 2)).fit_transform(X, weights=1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: m.denoise(X, "layer 3"), ValueError, ("components", "'layer 3'", "layer 1, layer 2")),
        (lambda m: m.denoise(X, [(3, 0)]), ValueError, ("components", "1 to 2", "got 3")),
        (lambda m: m.denoise(X, [(0, 0)]), ValueError, ("components", "1 to 2", "got 0")),
        (lambda m: m.denoise(X, [(1, 3)]), ValueError, ("components", "0 to 2", "got 3")),
        (lambda m: m.denoise(X, [(1, -1)]), ValueError, ("components", "0 to 2", "got -1")),
        (lambda m: m.denoise(X, []), ValueError, ("components", "at least one", "none")),
        (lambda m: m.denoise(X, [1]), TypeError, ("components", "pairs", "got 1")),
        (lambda m: m.denoise(X, 3), TypeError, ("components", "pairs", "got 3")),
        (lambda m: m.denoise(X, [(1, 0.5)]), TypeError, ("components", "pairs", "0.5")),
        (lambda m: m.denoise(X, method=""), ValueError, ("method", "''", "fixed-point", "gradient", "ridge")),
        (lambda m: m.denoise(X, method="guess"), ValueError, ("method", "'guess'", "fixed-point", "gradient", "ridge")),
        (lambda m: m.traverse(3, 0, [0.0]), ValueError, ("1 to 2", "got 3")),
        (lambda m: m.traverse(1, 9, [0.0]), ValueError, ("0 to 2", "got 9")),
        (lambda m: m.traverse(1, 0, [0.0], base=99), ValueError, ("base", "0 to 29", "got 99")),
        (lambda m: m.traverse(1, 0, [0.0], base=np.ones(3)), ValueError, ("3 features", "4 features")),
        (lambda m: m.traverse(1, 0, [0.0], base=X[:2]), ValueError, ("base:", "one point of 4 features", "got 2×4")),
        (lambda m: m.traverse(1, 0, [0.0], base=True), ValueError, ("base:", "training sample", "got True")),
        (lambda m: m.traverse(1, 0, [0.0], base="mean"), ValueError, ("base:", "training sample", "'mean'")),
        (lambda m: m.traverse("layer 1", 0, [0.0]), TypeError, ("layer, index:", "'layer 1'")),
        (lambda m: m.transform(X, out=np.empty((30, 5))[::-1]), ValueError, ("out:", "forward", "(-40, 8)")),
        (lambda m: m.transform(pd.Series(X[0])), ValueError, ("X:", "rows and columns", "a Series")),
        (lambda m: m.reconstruct(X, start=NAN * X), ValueError, ("start:", "NaN")),
        (lambda m: m.save(3), TypeError, ("path:", "got 3")),
        (lambda m: load(3), TypeError, ("path:", "got 3")),
        (lambda m: m.traverse(1, 0, [NAN]), ValueError, ("values", "NaN")),
        (lambda m: m.traverse(1, 0, "ab"), (TypeError, ValueError), ("values", "ab")),
        (lambda m: m.sample(0), ValueError, ("n:", "at least 1", "got 0")),
        (lambda m: m.sample(1.5), TypeError, ("n:", "integer", "1.5")),
        (lambda m: m.sample(1, random_state="a"), ValueError, ("random_state:", "an integer from 0", "'a'")),
        (lambda m: m.transform("none.npy"), FileNotFoundError, ("X:", "there is no file none.npy")),
        (lambda m: m.inverse_transform(X), ValueError, ("Z", "m×5", "30×4")),
        (lambda m: m.inverse_transform(np.ones(5)), ValueError, ("Z", "m×5")),
        (lambda m: m.inverse_transform(None), TypeError, ("Z", "real numbers", "None")),
        (lambda m: m.traverse(1, 0, None), TypeError, ("values", "real numbers", "None")),
        (lambda m: m.inverse_transform(np.full((2, 5), NAN)), ValueError, ("Z", "NaN")),
        (lambda m: m.inverse_transform(1j * np.ones((2, 5))), TypeError, ("Z:", "real")),
        (lambda m: m.inverse_transform(1j * torch.ones((2, 5))), TypeError, ("Z:", "real", "complex")),
        (lambda m: m.inverse_transform(torch.ones((2, 5)).to_sparse()), TypeError, ("Z:", "dense", "sparse")),
        (lambda m: m.inverse_transform(scipy.sparse.csr_matrix(np.ones((2, 5)))), TypeError, ("Z:", "Sparse")),
        (lambda m: m.inverse_transform([["1"] * 5]), TypeError, ("Z", "real numbers", "'1'")),
        (lambda m: m.inverse_transform([["a"] * 5]), (TypeError, ValueError), ("Z", "'a'")),
    ],
)
def test_bad_requests_of_a_fitted_model_are_refused(model, call, error, words):
    refused(lambda: call(model), error, *words)


def test_a_fixed_point_needs_a_kernel_of_distances():
    fitted = ConstrDRKM(2, kernel="cosine").fit(X)
    refused(lambda: fitted.denoise(X, method="fixed-point"), TypeError, "method", "Cosine", "gradient")


def test_load_refuses_a_device_that_is_not_there(model, tmp_path):
    model.save(tmp_path / "model")
    refused(lambda: load(tmp_path / "model", device="tpu"), ValueError, "device", "'tpu'", "cpu")


def test_a_refused_fit_leaves_the_fitted_model_usable(model):
    fitted = ConstrDRKM((3, 2)).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(with_entry(NAN))
    for other in (X[:, :3], torch.tensor(X[:, :3]), pd.DataFrame(X[:, :3], columns=list("abc"))):
        with pytest.raises(ValueError, match="eta"):
            fitted.set_params(eta=-1).fit(other)
    np.testing.assert_array_equal(fitted.transform(X), model.transform(X))


def test_a_model_whose_first_fit_was_refused_is_not_fitted():
    unfitted = ConstrDRKM((3, 2), eta=-1)
    with pytest.raises(ValueError, match="eta"):
        unfitted.fit(X)
    with pytest.raises(NotFittedError):
        unfitted.transform(X)


@pytest.mark.parametrize("n_components", [3, (3, 2)])
@pytest.mark.parametrize("center", [False, True])
def test_duplicated_samples_work(n_components, center):
    doubled = np.repeat(X[:10], 3, axis=0)
    fitted = ConstrDRKM(n_components, center=center).fit(doubled)
    assert fitted.converged_
    assert fitted.feasibility_ < 1e-12
    assert np.isfinite(fitted.denoise(doubled)).all()
    # Copies of a sample may end with different codes; a point gets those of one of its copies.
    apart = np.abs(fitted.transform(doubled)[:, None, :] - fitted.codes_.reshape(10, 3, -1).repeat(3, axis=0))
    assert apart.max(axis=2).min(axis=1).max() <= 1e-5


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear", "polynomial", "cosine"])
@pytest.mark.parametrize("value", [0.0, -7.3])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n_components", [2, (2, 1)])
def test_constant_data_fit_or_say_why_not(kernel, value, center, n_components):
    constant = np.full((12, 3), value)
    # Above the first layer the Laplacian and the cosine have kinks, where a fit may stall with a warning.
    deep = [kernel, "rbf"] if kernel in ("laplacian", "cosine", "linear") and n_components != 2 else kernel
    try:
        fitted = ConstrDRKM(n_components, kernel=deep, center=center).fit(constant)
    except ValueError as error:
        assert "constant" in str(error) or "zero" in str(error)  # noqa: PT017
        return
    assert np.isfinite(fitted.codes_).all()
    assert fitted.feasibility_ < 1e-10
    assert np.isfinite(fitted.transform(constant)).all()
    assert np.isfinite(fitted.score(constant))
    assert "ConstrDRKM: 12 samples" in fitted.summary()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear", "polynomial", "cosine"])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n_components", [2, (2, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_samples_that_are_alike_but_for_rounding_converge_without_a_warning(kernel, center, n_components, dtype):
    deep = [kernel, "rbf"] if n_components != 2 else kernel
    draws, eps = np.random.RandomState(0), np.finfo(dtype).eps
    # Shapes for which matrix products treat their edges differently; all pairs of the three choices occur.
    shapes, values, distances = [(12, 3), (13, 7), (17, 40)], [1.0, -1.5, 0.7], [0.0, 0.5 * eps, 5 * eps]
    for i, j in product(range(3), range(3)):
        shape, value, apart = shapes[i], values[j], distances[(i + j) % 3]
        alike = (value * (1 + apart * draws.randn(*shape))).astype(dtype)
        model = ConstrDRKM(n_components, kernel=deep, center=center, dtype=dtype).fit(alike)
        assert model.converged_, (shape, value, apart)


def test_they_converge_with_ten_times_the_rounding_of_this_cpu_too(monkeypatch):
    """Errors that all rows of a product share do not average out in J, and differ from CPU to CPU."""
    draws, eps = np.random.RandomState(0), float(np.finfo("float32").eps)
    exact = Energy.value_and_gradient

    def rounded(energy, *given):
        found = exact(energy, *given)
        return found._replace(value=found.value * (1 + 20 * eps * draws.uniform(-1, 1)))

    monkeypatch.setattr(Energy, "value_and_gradient", rounded)
    for value, apart in product([1.0, -1.5, 0.7], [0.0, 0.5 * eps, 5 * eps]):
        alike = (value * (1 + apart * draws.randn(17, 40))).astype("float32")
        model = ConstrDRKM((2, 1), kernel=["linear", "rbf"], dtype="float32").fit(alike)
        assert model.converged_, (value, apart)


@pytest.mark.parametrize("n_components", [3, (3, 2)])
@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_features_far_from_zero_are_more_than_rounding(mean, n, n_components):
    far = mean + 1e-2 * np.random.RandomState(0).randn(n, 5)
    kernel = "linear" if n_components == 3 else ["linear", "rbf"]
    found, near = (ConstrDRKM(n_components, kernel=kernel, center=True).fit(X) for X in (far, far - far.mean(axis=0)))
    assert found.converged_
    # The samples themselves are known to 1e-16 of their mean, at most 1e-8 of their spread.
    np.testing.assert_allclose(found.eigenvalues_[0], near.eigenvalues_[0], rtol=1e-5)
    np.testing.assert_allclose(found.objective_, near.objective_, rtol=1e-6)


def test_as_many_components_as_samples_work():
    fitted = ConstrDRKM((6, 4)).fit(X[:10])
    assert fitted.codes_.shape == (10, 10)
    assert fitted.feasibility_ < 1e-12


def test_very_large_and_very_small_data_stay_finite():
    for scale in (1e-8, 1e8):
        fitted = ConstrDRKM((3, 2)).fit(scale * X)
        np.testing.assert_allclose(fitted.objective_, ConstrDRKM((3, 2)).fit(X).objective_, rtol=1e-6)


def test_energies_that_overflow_are_refused_before_callbacks_and_the_progress_bar_see_them():
    seen = []
    model = ConstrDRKM((3, 2), kernel=("linear", "rbf"), init="orthogonal", random_state=0, dtype="float32", verbose=1)
    refused(lambda: model.fit(1e9 * X), ValueError, "X", "inf in float32")
    refused(lambda: model.set_params(callbacks=seen.append).fit(1e9 * X), ValueError, "X", "inf in float32")
    assert not seen


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("eta", ["auto", 1.0])
@pytest.mark.parametrize("init", ["kpca", "random"])
def test_kernel_values_that_overflow_are_refused_wherever_they_are_found(init, eta, center):
    """Weights of layers take a minimum of eigenvalues, and LAPACK gives up, by numpy's error and by torch's."""
    points = X[:20].copy()
    points[3] *= 1e3
    model = ConstrDRKM(
        (3, 2), kernel=[Polynomial(degree=30), "rbf"], init=init, eta=eta, center=center, dtype="float32"
    )
    refused(lambda: model.fit(points), ValueError, "X", "inf in float32", "divide the data", 'dtype="float64"')


@pytest.mark.parametrize("scale", [1e9, 1e13, 1e25])
@pytest.mark.parametrize("n_components", [3, (3, 2)])
@pytest.mark.parametrize("solver", ["auto", "augmented-lagrangian"])
def test_energies_that_overflow_are_refused_and_never_called_stationary(scale, n_components, solver):
    """The norm of a gradient overflows long before the energy does, and anything over it is 0."""
    kernel = ("linear", "rbf")[: np.size(n_components)]
    settings = {"kernel": kernel, "init": "orthogonal", "solver": solver, "random_state": 0}
    single = ConstrDRKM(n_components, **settings, dtype="float32")
    # Squared lengths overflow first, which shows in the samples themselves.
    why = ("squared lengths are too large for float32",) if scale > 1e19 else ("inf in float32", 'dtype="float64"')
    refused(lambda: single.fit(scale * X), ValueError, "X", "divide the data", *why)
    if scale == 1e9 and solver == "auto":
        eta = (scale**2, 1.0)[: np.size(n_components)]
        assert ConstrDRKM(n_components, eta=eta, **settings).fit(scale * X).converged_
