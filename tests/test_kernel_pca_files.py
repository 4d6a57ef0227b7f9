"""KernelPCA on disk: the same results to the last bit, and errors for what a file cannot or must not hold."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone

import drkm
from command_line import refused
from drkm import KernelPCA, gram, kernels
from drkm.files import container
from drkm.kernels import nystroem
from drkm.persistence import model_file
from drkm.serving.projection import FEW_VALUES

X = np.random.RandomState(0).randn(60, 5)
NEW = np.random.RandomState(1).randn(7, 5)

MODELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "poly": {"kernel": "poly", "degree": 2},
    "poly of a broken degree": {"kernel": "poly", "degree": 1.5, "gamma": 0.1, "coef0": 9.0},
    "cosine": {"kernel": "cosine"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 1e-3},
    "ridge": {"kernel": "rbf", "preimage": "ridge", "alpha": 0.1},
    "learned": {"kernel": "rbf", "fit_inverse_transform": True},
    "fixed-point": {"kernel": "rbf", "preimage": "fixed-point"},
    "gradient": {"kernel": "poly", "preimage": "gradient"},
    "a kernel with a rule": {"kernel": kernels.Matern(1.5, "median"), "preimage": "gradient"},
    "nystroem": {"kernel": "rbf", "gram": gram.Nystroem(20), "preimage": "gradient"},
    "fourier": {"kernel": "rbf", "gram": "fourier"},
    "tiled, all components": {"kernel": "rbf", "gram": gram.Tiled(1e9), "n_components": None},
    "float32": {"kernel": "rbf", "dtype": "float32", "remove_zero_eig": True},
}


class Gaussian(KernelPCA):
    """A class of a user, with fewer parameters."""

    def __init__(self, n_components=3):
        super().__init__(n_components, kernel="rbf")


def saved(model, path):
    model.save(path)
    return drkm.load(path)


def test_a_class_with_fewer_parameters_is_saved_with_all_of_them(tmp_path):
    model = Gaussian().fit(X)
    np.testing.assert_array_equal(saved(model, tmp_path / "model").transform(NEW), model.transform(NEW))


@pytest.mark.parametrize("kernel", [kernels.Polynomial(2), kernels.Linear(), kernels.RBF(1e9)], ids=str)
def test_a_learned_inverse_has_the_precision_of_the_samples_though_more_digits_were_needed(kernel, tmp_path):
    far = (X + 1e4).astype(np.float32)
    model = KernelPCA(2, kernel=kernel, fit_inverse_transform=True).fit(far)
    assert model._projection.weights.dtype == torch.float64
    assert model.dual_coef_.dtype == np.float32
    codes = model.transform(far[:5])
    np.testing.assert_array_equal(
        saved(model, tmp_path / "model").inverse_transform(codes), model.inverse_transform(codes)
    )


def assert_equal_bits(model, other, new):
    names = ("X_fit_", "eigenvalues_", "eigenvectors_", "dual_coef_", "X_transformed_fit_")
    for name in names:
        assert hasattr(model, name) == hasattr(other, name), name
        one, two = getattr(model, name, None), getattr(other, name, None)
        if sparse.issparse(one):
            one, two = one.toarray(), two.toarray()
        if one is not None:
            assert type(one) is type(two)
            assert one.dtype == two.dtype
            assert np.asarray(one).tobytes() == np.asarray(two).tobytes(), name
    assert type(other) is KernelPCA
    assert other.gamma_ == model.gamma_
    codes = model.transform(new)
    assert np.asarray(codes).tobytes() == np.asarray(other.transform(new)).tobytes()
    if model.preimage or model.fit_inverse_transform:
        assert model.inverse_transform(codes).tobytes() == other.inverse_transform(codes).tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_equal_bits(name, tmp_path):
    options = {"n_components": 4, "random_state": 3, **MODELS[name]}
    model = KernelPCA(**options).fit(X)
    other = saved(model, tmp_path / "model")
    assert_equal_bits(model, other, NEW)
    # Objects are compared by their text.
    assert str(other.get_params()) == str(model.get_params()) or "gram" in options
    assert_equal_bits(model, saved(other, tmp_path / "again"), NEW)


UNUSUAL = {
    "numbers of numpy": {"kernel": "rbf", "gamma": np.float32(0.3), "alpha": np.float64(2), "degree": np.int32(2)},
    "a regression with a kernel object": {"kernel": kernels.RBF(3.0), "preimage": "ridge"},
    "no component": {"kernel": "rbf", "gamma": 0.0, "n_components": None},
}


@pytest.mark.parametrize("how", ["tiled", gram.Nystroem(20)], ids=str)
def test_a_model_of_float32_with_distances_in_float64_gives_equal_bits(how, tmp_path):
    shift = np.where(np.arange(60) % 2, 3000.0, 0.0)[:, None]
    model = KernelPCA(3, kernel="rbf", gram=how, preimage="gradient").fit((X + shift).astype(np.float32))
    assert model._projection.weights.dtype == torch.float64
    assert_equal_bits(model, saved(model, tmp_path / "model"), NEW.astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNUSUAL)
def test_every_model_that_is_written_can_be_read(name, dtype, tmp_path):
    model = KernelPCA(**{"n_components": 3, **UNUSUAL[name]}).fit(X.astype(dtype))
    assert_equal_bits(model, saved(model, tmp_path / "model"), NEW.astype(dtype))


def test_sparse_samples_without_an_entry_are_read_again(tmp_path):
    rows = sparse.csr_matrix((20, 4))
    assert_equal_bits(model := KernelPCA(2, kernel="rbf").fit(rows), saved(model, tmp_path / "model"), rows)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "sigmoid"])
def test_sparse_samples_are_read_as_sparse_ones(kernel, tmp_path):
    rows = sparse.random(40, 30, density=0.1, random_state=0, format="csr")
    model = KernelPCA(3, kernel=kernel, gamma=0.1).fit(rows)
    other = saved(model, tmp_path / "model")
    assert sparse.issparse(other.X_fit_)
    assert_equal_bits(model, other, rows[:5])
    assert_equal_bits(model, other, rows[:5].toarray())


def test_a_precomputed_kernel_is_read_again(tmp_path):
    K, new = X @ X.T, NEW @ X.T
    assert_equal_bits(model := KernelPCA(3, kernel="precomputed").fit(K), saved(model, tmp_path / "model"), new)


def test_tensors_names_of_features_and_feature_maps_are_read_again(tmp_path):
    model = KernelPCA(3, kernel="rbf").fit(torch.from_numpy(X))
    other = saved(model, tmp_path / "model")
    assert isinstance(other.eigenvalues_, torch.Tensor)
    assert_equal_bits(model, other, torch.from_numpy(NEW))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    assert list(saved(KernelPCA(3).fit(frame), tmp_path / "model").feature_names_in_) == list("abcde")
    map_ = torch.nn.Linear(5, 6, dtype=torch.float64)
    model = KernelPCA(3, kernel=kernels.FeatureMap(map_)).fit(X)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"^feature_maps: "):
        drkm.load(tmp_path / "model")
    assert_equal_bits(model, drkm.load(tmp_path / "model", feature_maps={1: map_}), NEW)


def test_a_file_holds_what_was_fitted_and_not_what_is_set_for_the_next_fit(tmp_path):
    model = KernelPCA(3, kernel="rbf").fit(X)
    other = saved(model.set_params(kernel="sigmoid", gamma=2.0), tmp_path / "model")
    assert other.kernel == "rbf"
    assert other.gamma is None
    assert other.transform(NEW).tobytes() == model.transform(NEW).tobytes()


class Halved(kernels.RBF):
    pass


@pytest.mark.parametrize("kernel", [lambda x, y: x @ y, Halved(1.0)])
def test_kernels_that_are_code_are_refused_in_one_sentence(kernel, tmp_path):
    with pytest.raises(ValueError, match=r"^kernel: a file holds no code, ") as caught:
        KernelPCA(3, kernel=kernel).fit(X).save(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        KernelPCA().save(tmp_path / "model")


@pytest.mark.parametrize("command", ["info", "encode"])
def test_the_command_line_says_that_it_takes_no_such_model(command, tmp_path):
    KernelPCA(3, kernel="rbf").fit(X).save(tmp_path / "model")
    np.save(tmp_path / "new.npy", NEW)
    more = [] if command == "info" else [str(tmp_path / "new.npy"), "-o", str(tmp_path / "codes.npy")]
    assert "holds a KernelPCA, which no command supports" in refused(command, tmp_path / "model", *more)


def _without(name):
    return lambda tensors, header: tensors.pop(name)


def _header(**parts):
    return lambda tensors, header: header.update(parts)


def _parameters(**values):
    return lambda tensors, header: header["parameters"].update(values)


def _tensor(name, change):
    return lambda tensors, header: tensors.update({name: change(tensors[name])})


@pytest.mark.parametrize(
    "forge",
    [
        _without("values"),
        _without("X"),
        _without("dual_coef"),
        _header(estimator="ConstrDRKM"),
        _header(kernel=None),
        _header(n_features=4),
        _header(more=1),
        _parameters(kernel="sigmoid"),
        _parameters(kernel="no kernel"),
        _parameters(preimage=None),
        _parameters(gram="no operator"),
        _parameters(tol="small"),
        _parameters(n_jobs="many"),
        _parameters(more=1),
        lambda tensors, header: header["parameters"].pop("alpha"),
        lambda tensors, header: tensors.update(more=tensors["X"].clone()),
        _tensor("values", lambda values: values.flip(0)),
        _tensor("vectors", lambda vectors: 2 * vectors),
        _tensor("weights", lambda weights: weights[1:]),
        _tensor("shift", lambda shift: shift * torch.nan),
        _tensor("X", lambda samples: samples.float()),
    ],
)
def test_a_forged_file_is_refused_in_one_sentence_that_names_it(forge, tmp_path):
    path = tmp_path / "model"
    KernelPCA(3, kernel="rbf", preimage="ridge").fit(X).save(path)
    tensors, header = container.read(path, model_file.KIND, model_file.VERSION)
    forge(tensors, header)
    container.write(path, tensors, header)
    with pytest.raises(ValueError, match=r"^path: ") as caught:
        drkm.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_more_components_than_samples_is_refused_before_their_square_is_formed(tmp_path):
    path, count = tmp_path / "model", 60_000
    KernelPCA(1, kernel="rbf").fit(X).save(path)
    tensors, header = container.read(path, model_file.KIND, model_file.VERSION)
    forged = {name: torch.zeros(*tensor.shape[:-1], count).double()[:1] for name, tensor in tensors.items()}
    forged |= {"X": tensors["X"][:1], "values": torch.zeros(count).double(), "shift": torch.zeros(count).double()}
    container.write(path, forged, header)
    tracemalloc.start()
    with pytest.raises(ValueError, match="vectors: expected at most 1 columns, one per sample, got 60000"):
        drkm.load(path)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 10 * path.stat().st_size


@pytest.mark.parametrize(
    ("name", "spoil", "sentence"),
    [
        ("X.indices", lambda indices: indices + 30, r"X.indices: expected columns from 0 to 29, got \d+"),
        ("X.indices", lambda indices: -indices - 1, r"X.indices: expected columns from 0 to 29, got -\d+"),
        ("X.rows", lambda rows: rows.flip(0), "X.rows: expected numbers from 0 to 120, got 120 to 0"),
        ("X.rows", lambda rows: torch.where(rows == rows[5], 120, rows), "X.rows: expected numbers that never fall"),
        ("X.rows", lambda rows: rows[:-1], "X.rows"),
        ("X.data", lambda data: data[1:], "X.indices"),
    ],
)
def test_forged_sparse_samples_are_refused(name, spoil, sentence, tmp_path):
    path = tmp_path / "model"
    KernelPCA(3).fit(sparse.random(40, 30, density=0.1, random_state=0, format="csr")).save(path)
    tensors, header = container.read(path, model_file.KIND, model_file.VERSION)
    container.write(path, {**tensors, name: spoil(tensors[name])}, header)
    with pytest.raises(ValueError, match=f"is damaged, .*{sentence}"):
        drkm.load(path)


def test_a_file_is_read_by_a_process_that_knows_nothing_else(tmp_path):
    model = KernelPCA(3, kernel="rbf").fit(X)
    model.save(tmp_path / "model")
    code = "import drkm, json, numpy as np; print(json.dumps(drkm.load('model').transform(np.ones((1, 5))).tolist()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert np.allclose(json.loads(done.stdout), model.transform(np.ones((1, 5))), rtol=0, atol=1e-12)


#: models that are used without torch
LIGHT = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "poly": {"kernel": "poly", "degree": 2},
    "linear": {"kernel": "linear"},
    "cosine": {"kernel": "cosine"},
    "learned": {"kernel": "rbf", "fit_inverse_transform": True},
    "float32": {"kernel": "rbf", "dtype": "float32"},
}


def test_few_points_have_the_same_codes_in_a_process_that_imports_no_torch(tmp_path):
    models = {name: KernelPCA(3, **options).fit(X) for name, options in LIGHT.items()}
    for name, model in models.items():
        model.save(tmp_path / name)
    np.save(tmp_path / "new.npy", NEW)
    code = f"""
import sys, numpy as np, drkm
models, new = [drkm.load(name) for name in {list(LIGHT)}], np.load("new.npy")
codes = [model.transform(new).tobytes() for model in models]
names = [(repr(model), *model.get_feature_names_out()) for model in models]
assert "torch" not in sys.modules
print(*(found.hex() for found in codes))
model = models[0]
assert str(model.kernel_) == "RBF(sigma2=1.6666666666666667)"
assert "torch" in sys.modules
assert model.transform(new).tobytes() == codes[0]
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [model.transform(NEW).tobytes().hex() for model in models.values()]


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.transform(np.tile(NEW, (FEW_VALUES // len(X), 1))),
        lambda model: model.transform(torch.from_numpy(NEW)).numpy(),
        lambda model: model.transform(sparse.csr_matrix(NEW)),
        lambda model: model.inverse_transform(model.transform(NEW)),
        lambda model: model.to_numpy().transform(NEW),
        lambda model: model.to_torch()(torch.from_numpy(NEW)).numpy(),
        lambda model: pickle.loads(pickle.dumps(model)).transform(NEW),
        lambda model: copy.deepcopy(model).transform(NEW),
        lambda model: clone(model).fit(X).transform(NEW),
        lambda model: model.kernel_(torch.from_numpy(NEW), torch.from_numpy(X)).numpy(),
    ],
)
def test_what_numpy_does_not_compute_has_the_same_bits_after_load(use, tmp_path):
    model = KernelPCA(3, kernel="rbf", preimage="ridge").fit(X)
    other = saved(model, tmp_path / "model")
    assert "projection" not in vars(other._codes)
    assert use(other).tobytes() == use(model).tobytes()
    assert_equal_bits(model, other, NEW)


def test_a_model_that_is_not_fitted_has_no_kernel():
    assert not hasattr(KernelPCA(), "kernel_")


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "cosine"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_points_have_the_codes_of_many(kernel, dtype):
    model = KernelPCA(3, kernel=kernel).fit(X.astype(dtype))
    many = np.tile(NEW, (FEW_VALUES // len(X), 1)).astype(dtype)
    few = model.transform(many[: len(NEW)])
    assert few.dtype == dtype
    scale = np.abs(few).max()
    np.testing.assert_allclose(few, model.transform(many)[: len(NEW)], rtol=0, atol=100 * np.finfo(dtype).eps * scale)


BAD_POINTS = {
    "other features": np.ones((2, 4)),
    "no table": np.ones(5),
    "no row": np.ones((0, 5)),
    "not finite": np.full((2, 5), np.nan),
    "complex": np.ones((2, 5)) * 1j,
    "text": np.array([["a"] * 5]),
    "dates": np.zeros((2, 5), "M8[s]"),
    "beyond the kernel": np.full((2, 5), 1e200),
}


@pytest.mark.parametrize("name", BAD_POINTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loaded_model_refuses_what_many_points_are_refused_for(name, dtype, tmp_path):
    model = KernelPCA(3, kernel="poly").fit(X.astype(dtype))
    other, bad = saved(model, tmp_path / "model"), BAD_POINTS[name]
    many = np.concatenate([bad] * (FEW_VALUES // len(X))) if bad.size else bad
    errors = []
    for use in (model, other):
        for points in (bad, many):
            with pytest.raises((TypeError, ValueError)) as caught:
                use.transform(points)
            errors.append((type(caught.value), str(caught.value).replace(str(len(many)), str(len(bad)))))
    assert len(set(errors)) == 1


def test_loading_and_transforming_imports_nothing_but_scikit_learn_and_what_it_needs_of_ours(tmp_path):
    KernelPCA(2, kernel="rbf").fit(X).save(tmp_path / "model")
    code = f"""
import sys, sklearn.base, sklearn.utils.validation, numpy.typing
sys.path[:0] = {[path for path in sys.path if path]!r}
before = set(sys.modules)
import numpy, drkm
drkm.load({str(tmp_path / "model")!r}).transform(numpy.ones((1, 5)))
print(*(set(sys.modules) - before))
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    foreign = {name for name in loaded if name.partition(".")[0] not in {"drkm", *sys.stdlib_module_names}}
    assert foreign == set()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("drkm.")}
    others = {"anomalies", "baselines", "cli", "datasets", "experiments", "explorer", "metrics", "pages", "plotting"}
    assert not rooms & {*others, "demos", "imputation", "runs", "selection"}


def test_fitting_imports_nothing_that_only_preimages_or_gaps_need():
    code = """
import sys, torch, sklearn.base, sklearn.utils.validation
before = set(sys.modules)
import numpy
from drkm import KernelPCA
KernelPCA(2, kernel="rbf").fit_transform(numpy.eye(5))
print(*(set(sys.modules) - before))
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"drkm.imputation", "drkm.inference.preimage", "shlex"} & set(loaded)


def test_an_approximation_as_kernel_is_fitted_again_as_it_was(tmp_path):
    kernel = kernels.NystroemFeatures(kernels.RBF(2.0), torch.from_numpy(X[:8].copy()))
    model = KernelPCA(2, kernel=kernel).fit(X)
    model.save(tmp_path / "model")
    loaded = drkm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.fit(X).transform(X), model.fit(X).transform(X))


def circle(n):
    """Points whose kernel matrix has double eigenvalues."""
    angle = 2 * np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
@pytest.mark.parametrize("m", [10, 240], ids=["few landmarks", "all samples"])
def test_a_pickle_with_landmarks_answers_alike_where_eigenvectors_are_rotated_by_rounding(m, copied, monkeypatch):
    points = circle(240)
    model = KernelPCA(6, kernel="rbf", gamma=2.0, preimage="gradient", gram=gram.Nystroem(m)).fit(points)
    codes = model.transform(points + 0.1)
    back = model.inverse_transform(codes)
    # Samples as an array and as a tensor, codes, landmarks, and one number per component and one more for each.
    numbers = 2 * points.size + codes.size + m * (2 + 6 + 1)
    assert len(pickle.dumps(model)) < 8 * numbers + 6000

    def rotated(kernel, Z):
        F = formed(kernel, Z)
        return F @ torch.linalg.qr(torch.randn(F.shape[1], F.shape[1], dtype=F.dtype))[0]

    formed = nystroem.inverse_root
    monkeypatch.setattr(nystroem, "inverse_root", rotated)
    again = copied(model)
    np.testing.assert_allclose(again.transform(points + 0.1), codes, atol=1e-12)
    np.testing.assert_allclose(again.inverse_transform(codes), back, atol=1e-6)
    if m == 10:
        assert again.transform(points + 0.1).tobytes() == codes.tobytes()
    twice = copied(again)
    assert twice.transform(points).tobytes() == again.transform(points).tobytes()
    # A model of other landmarks is fitted anew.
    assert again.fit(points[:50]).transform(points).shape == (240, 6)
