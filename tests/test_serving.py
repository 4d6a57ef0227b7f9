"""Codes of one-layer models with numpy alone: those of `transform`, without importing torch."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import drkm
from drkm import ConstrDRKM, KernelPCA
from drkm.files import container
from drkm.files.tensor_file import Stored
from drkm.gram import Nystroem
from drkm.kernels import FeatureMap, Laplacian, Matern, Polynomial
from drkm.kernels.base import KINDS
from drkm.loading import load_prepared
from drkm.serving import Projection, load
from drkm.serving.formulas import FORMULAS


def samples(n, seed=0, d=6):
    return np.random.RandomState(seed).randn(n, d) * np.linspace(0.5, 3, d) + 2


MODELS = [
    KernelPCA(4),
    KernelPCA(4, kernel="rbf", gamma=0.01),
    KernelPCA(4, kernel="poly"),
    KernelPCA(4, kernel="cosine"),
    KernelPCA(4, kernel=Matern(1.5)),
    KernelPCA(4, kernel=Matern(2.5, sigma2=3.0)),
    KernelPCA(4, kernel=Laplacian()),
    KernelPCA(4, kernel="rbf", gamma=0.01, gram=Nystroem(m=50)),
    ConstrDRKM(4),
    ConstrDRKM(4, center=True, axes="varimax"),
    ConstrDRKM(4, kernel="laplacian", eta=2.0),
    ConstrDRKM(4, kernel="linear", center=True),
    ConstrDRKM(4, kernel="cosine"),
    ConstrDRKM(4, kernel=Polynomial(5, offset=0.5)),
    ConstrDRKM(4, encoder="projection"),
    ConstrDRKM(4, gram=Nystroem(m=50), center=True),
    ConstrDRKM(4, gram="fourier", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_it_answers_like_transform_and_so_does_its_file(model, tmp_path):
    X = samples(150)
    served = model.fit(X).to_numpy()
    served.save(tmp_path / "codes")
    # Training samples too: kernels with a kink magnify the rounding of distances that are zero.
    points = np.concatenate([X[:10], samples(20, seed=1)])
    expected = model.transform(points)
    for answer in (served.transform(points), load(tmp_path / "codes").transform(points)):
        assert answer.dtype == np.float64
        np.testing.assert_allclose(answer, expected, atol=1e-11 * np.abs(expected).max())


def test_every_kernel_is_served_or_refused_by_name():
    # Nyström features are folded into the weights of their kernel, given kernel values are projected as they are.
    folded, refused = {"NystroemFeatures", "Precomputed"}, {"FeatureMap"}
    assert set(KINDS) == set(FORMULAS) | folded | refused
    model = ConstrDRKM(2, kernel=FeatureMap(torch.nn.Linear(6, 9))).fit(samples(40))
    with pytest.raises(ValueError, match=r"kernel: to_numpy needs one of RBF.*, got FeatureMap; use to_torch"):
        model.to_numpy()


def test_a_kernel_of_the_same_name_is_not_taken_for_ours():
    class RBF(drkm.kernels.RBF):
        def values(self, exponent):
            return 0.5 * super().values(exponent)

    with pytest.raises(ValueError, match=r"kernel: to_numpy needs one of .*, got RBF"):
        KernelPCA(2, kernel=RBF(2.0)).fit(samples(40)).to_numpy()


def test_deep_models_and_kernels_of_scikit_learn_are_refused():
    with pytest.raises(ValueError, match="to_torch and to_numpy are for one layer, got 2 layers"):
        ConstrDRKM((3, 2)).fit(samples(30)).to_numpy()
    with pytest.raises(ValueError, match="to_torch and to_numpy need a kernel that torch computes, got 'sigmoid'"):
        KernelPCA(1, kernel="sigmoid", gamma=1e-4).fit(samples(30)).to_numpy()


@pytest.mark.parametrize("model", [KernelPCA(3, kernel="precomputed"), ConstrDRKM(3, kernel="precomputed")], ids=str)
def test_it_projects_the_values_of_a_precomputed_kernel(model):
    X = samples(60)
    rows = X[:5] @ X.T
    expected = model.fit(X @ X.T).transform(rows)
    np.testing.assert_allclose(model.to_numpy().transform(rows), expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_codes_have_the_precision_of_those_of_the_model(shift):
    # Far from the origin, the distances of float32 samples need more digits, and weights are float64.
    X = (samples(80) + shift).astype(np.float32)
    model = KernelPCA(3, kernel="rbf").fit(X)
    codes = model.to_numpy().transform(X)
    assert codes.dtype == model.transform(X).dtype == np.float32
    np.testing.assert_allclose(codes, model.transform(X), atol=1e-5)


@pytest.mark.parametrize(("center", "shift"), [(True, 0.0), (True, 100.0), (False, 0.0)])
def test_rounding_of_components_beyond_the_rank_is_not_inverted(center, shift):
    X = (np.random.default_rng(0).standard_normal((150, 5)) + shift).astype(np.float32)
    model = ConstrDRKM(12, kernel="linear", center=center, dtype="float32").fit(X)
    expected = model.transform(X[:20])
    atol = 1e-3 * np.abs(expected).max()
    np.testing.assert_allclose(model.to_numpy().transform(X[:20]), expected, atol=atol)
    np.testing.assert_allclose(model.to_torch()(torch.from_numpy(X[:20])), expected, atol=atol)


def test_many_points_are_projected_a_few_at_a_time(monkeypatch):
    model = KernelPCA(3, kernel="rbf").fit(samples(80))
    points = samples(37, seed=1)
    expected = model.to_numpy().transform(points)
    monkeypatch.setattr("drkm.serving.projection.ENTRIES", 5 * 80)
    np.testing.assert_allclose(model.to_numpy().transform(points), expected, atol=1e-13)
    assert model.to_numpy().transform(points[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 5)), "X: expected rows of 6 features, got 2×5"),
        (np.ones(6), "X: expected rows of 6 features, got 6: one point is a table of one row, x\\[None\\]"),
        (3.0, "X: expected rows of 6 features, got one number"),
        (np.full((2, 6), np.nan), "X: contains NaN or infinity"),
        ([["a"] * 6], "X: expected a table of numbers"),
        ([[1j] * 6], "X: expected a table of numbers"),
        ([[object()] * 6], "X: expected a table of numbers"),
        (np.full((2, 6), "1", dtype=object), "X: expected a table of numbers \\(got text like '1'"),
        ([[1.0] * 6, [1.0]], "X: expected a table of numbers"),
        (np.ma.masked_equal(np.eye(6), 1.0), "X: contains masked values"),
        (np.full((2, 6), 1e200), "X: the kernel returns NaN or inf for 2 of these points"),
    ],
)
def test_points_that_have_no_codes_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(2, kernel="poly").fit(samples(30)).to_numpy().transform(X)


@pytest.mark.parametrize("model", [KernelPCA(2, kernel="rbf"), ConstrDRKM(2)], ids=str)
def test_columns_in_another_order_are_refused(model, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(samples(30), columns=list("abcdef"))
    model.fit(frame).to_numpy().save(tmp_path / "codes")
    served = load(tmp_path / "codes")
    np.testing.assert_allclose(served.transform(frame), np.asarray(model.transform(frame)), atol=1e-12)
    np.testing.assert_array_equal(served.transform(frame.to_numpy()), served.transform(frame))
    with pytest.raises(ValueError, match="X: expected the columns of the fit in order, got 'b' for 'a'"):
        served.transform(frame[list("bacdef")])


def test_a_model_without_components_has_a_file_too(tmp_path):
    X = np.ones((9, 3))
    KernelPCA(2, remove_zero_eig=True).fit(X).to_numpy().save(tmp_path / "codes")
    assert load(tmp_path / "codes").transform(X).shape == (9, 0)


def test_it_can_be_pickled_after_use():
    served = KernelPCA(2, kernel="rbf").fit(samples(30)).to_numpy()
    codes = served.transform(samples(5, seed=1))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(served)).transform(samples(5, seed=1)), codes)


def test_a_process_that_transforms_points_imports_neither_torch_nor_scikit_learn(tmp_path):
    KernelPCA(2, kernel="rbf").fit(samples(30)).to_numpy().save(tmp_path / "codes")
    code = (
        "import sys, drkm; codes = drkm.load('codes').transform([[0.0] * 6]); assert codes.shape == (1, 2); "
        "assert not {'torch', 'sklearn', 'scipy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_load_returns_whatever_was_saved(tmp_path):
    model = KernelPCA(2, kernel="rbf").fit(samples(30))
    model.save(tmp_path / "model")
    model.to_numpy().save(tmp_path / "codes")
    assert type(drkm.load(tmp_path / "model")) is KernelPCA
    assert type(drkm.load(tmp_path / "codes")) is Projection
    for option, value in {"device": "cuda", "feature_maps": {1: np.cos}}.items():
        with pytest.raises(ValueError, match=f"{option}: .*codes holds a projection, which"):
            drkm.load(tmp_path / "codes", **{option: value})


@pytest.mark.parametrize(("path", "error"), [("missing", FileNotFoundError), (".", ValueError), (5, TypeError)])
def test_load_refuses_what_is_no_file(path, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match="path: "):
        drkm.load(path)


ARRAYS = {"points": np.ones((4, 3)), "weights": np.ones((4, 2)), "shift": np.zeros(2)}
HEADER = {"kind": "projection", "version": 1, "kernel": "RBF", "parameters": {"sigma2": 1.0}, "precision": "float64"}
HEADER["feature_names"] = []


def write(path, arrays=ARRAYS, **header):
    container.write(path, {name: Stored.of(array) for name, array in arrays.items()}, HEADER | header)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "Python"}, "kernel: expected one of RBF"),
        ({"parameters": {}}, "sigma2: expected a finite number, got nothing"),
        ({"parameters": {"sigma2": -1.0}}, "sigma2: expected a number of at least"),
        ({"parameters": {"sigma2": 1.0, "nu": 2.5}}, "'nu': expected no such part"),
        ({"kernel": "Matern", "parameters": {"sigma2": 1.0, "nu": 2.0}}, "nu: got 2.0, allowed are 1.5 and 2.5"),
        ({"precision": "int64"}, "precision: expected one of float32, float64"),
        ({"feature_names": ["a", "b"]}, "feature_names: expected 3, got 2"),
        ({"version": 2}, "was written by a newer drkm"),
        ({"kind": "model"}, "is not a drkm projection but a model, which drkm.load reads"),
        ({"kind": ["model"]}, "is not a drkm projection$"),
        ({"arrays": {**ARRAYS, "weights": np.ones((5, 2))}}, "weights: expected 4×2 numbers"),
        ({"arrays": {**ARRAYS, "shift": np.zeros(2, "float32")}}, "weights: expected 4×2 numbers in the precision"),
        ({"arrays": {**ARRAYS, "points": np.ones(4)}}, "points: expected numbers in 2 dimensions"),
        ({"arrays": {**ARRAYS, "shift": np.array([0.0, np.inf])}}, "shift: expected finite numbers"),
        ({"arrays": {**ARRAYS, "points": np.ones((0, 3)), "weights": np.ones((0, 2))}}, "weights: expected n×2"),
        ({"arrays": {**ARRAYS, "more": np.ones(1)}}, "expected points, weights, shift, got more, points"),
        ({"kernel": "Linear", "parameters": {}}, "expected weights, shift, got points"),
    ],
)
def test_a_file_with_a_wrong_part_is_refused(tmp_path, changes, message):
    write(tmp_path / "codes", **changes)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "codes")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "codes"
    write(path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged, its content has changed since it was written"):
        load(path)
    path.write_bytes(content[:-5])
    with pytest.raises(ValueError, match="is truncated or not a drkm projection"):
        load(path)


def test_commands_say_what_reads_a_projection(tmp_path):
    write(tmp_path / "codes")
    with pytest.raises(ValueError, match=r"not a drkm model but a projection, which drkm\.load reads"):
        load_prepared(tmp_path / "codes")


def test_a_projection_of_ones_own_numbers():
    projection = Projection("Linear", {}, None, np.eye(3)[:, :2], np.array([1.0, 0.0]))
    assert repr(projection) == "<Projection of 3 features to 2 codes, Linear()>"
    np.testing.assert_array_equal(projection.transform([[1, 2, 3]]), [[0.0, 2.0]])
