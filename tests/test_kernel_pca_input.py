"""KernelPCA on samples of every kind: precisions, devices, integers, sparse matrices, approximations as kernels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition
import torch
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import drkm
from drkm import ConstrDRKM, KernelPCA, gram, kernels
from drkm.inference import kernel_projection
from drkm.kernel_pca import by_numpy
from drkm.kernel_pca import samples as kernel_pca_samples
from drkm.kernels import FeatureMap, FourierFeatures, NystroemFeatures
from drkm.machine import blas

X = np.random.RandomState(0).randn(60, 4)
NEW = np.random.RandomState(1).randn(7, 4)
OF_SCIKIT = [
    {"kernel": "sigmoid", "gamma": 1e-3},
    {"kernel": "poly", "degree": 1.5, "gamma": 0.1, "coef0": 9.0},
    {"kernel": lambda x, y: x @ y},
]
WITH_MATRICES = [*OF_SCIKIT, {"kernel": "precomputed"}]


@pytest.fixture
def in_float32(monkeypatch):
    """Take float32 where it is exact enough, as on a GPU."""
    monkeypatch.setattr(kernel_pca_samples, "prefers_float32", lambda where: True)
    monkeypatch.setattr(by_numpy, "fitted", lambda *given: None)


def assert_same_codes(model, known, new, atol=1e-6):
    codes, expected = np.asarray(model.transform(new)), np.asarray(known.transform(new))
    signs = np.sign((codes * expected).sum(axis=0))
    np.testing.assert_allclose(codes * signs, expected, atol=atol * np.abs(expected).max())


FAR = [
    ({"kernel": "rbf", "gamma": 0.1}, 2e6),
    ({"kernel": "rbf", "gamma": 1e-7}, 2e5),
    ({"kernel": "rbf", "gamma": 1e5}, 1.0),
    ({"kernel": "linear"}, 2e5),
    ({"kernel": "poly", "degree": 2}, 2e4),
    ({"kernel": kernels.RBF("median")}, 2e6),
    ({"kernel": kernels.Matern(1.5, "scale")}, 2e6),
    ({"kernel": kernels.RBF(5e6)}, 2e5),
    ({"kernel": kernels.RBF(5e-6)}, 1.0),
]


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(("parameters", "offset"), FAR, ids=str)
def test_whether_float32_is_exact_enough_is_decided_before_samples_are_rounded(parameters, offset, kind, in_float32):
    far = X + offset
    model = KernelPCA(2, **parameters).fit(kind(far))
    known = KernelPCA(2, dtype="float64", **parameters).fit(far)
    np.testing.assert_array_equal(np.asarray(model.X_fit_), far)
    np.testing.assert_allclose(np.asarray(model.eigenvalues_), known.eigenvalues_, rtol=1e-10)
    assert_same_codes(model, known, NEW + offset)


def test_float32_is_taken_where_it_is_exact_enough(in_float32):
    for given in (X, torch.from_numpy(X), torch.from_numpy((20 * X).astype(np.int64))):
        model = KernelPCA(2, kernel="rbf").fit(given)
        assert {part.dtype for part in map(torch.as_tensor, (model.X_fit_, model.eigenvalues_))} == {torch.float32}
    with pytest.raises(ValueError, match=r"^X: float32 loses \d+% of what tells the samples apart"):
        KernelPCA(2, dtype="float32").fit(X + 2e6)


def test_samples_of_a_model_are_not_those_of_the_caller_whatever_their_precision(in_float32):
    far = torch.from_numpy(X + 2e6)
    model = KernelPCA(2, kernel="rbf").fit(far)
    codes = model.transform(far)
    before = far.clone()
    far += 1.0
    torch.testing.assert_close(model.transform(before), codes)


@pytest.mark.parametrize("given", [X, torch.from_numpy(X)], ids=["array", "tensor"])
@pytest.mark.parametrize("kernel", [kernels.RBF(5e-6), kernels.Laplacian(5e-6), kernels.Matern(1.5, 5e-6)], ids=str)
def test_a_narrow_kernel_object_takes_float64_where_float32_would_round_distances_away(kernel, given):
    single = given.astype(np.float32) if isinstance(given, np.ndarray) else given.float()
    model = KernelPCA(3, kernel=kernel).fit(single)
    known = KernelPCA(3, kernel=kernel).fit(np.asarray(single, dtype=np.float64))
    np.testing.assert_allclose(np.asarray(model.eigenvalues_), known.eigenvalues_, rtol=1e-6)
    assert torch.as_tensor(model.transform(single)).dtype == torch.float32
    with pytest.raises(ValueError, match=r'^sigma2: 5e-06 is too narrow in float32 .* take dtype="float64"$'):
        KernelPCA(3, kernel=kernel, dtype="float32").fit(single)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int64, torch.bool])
@pytest.mark.parametrize(
    "parameters", [{"kernel": "rbf"}, {"kernel": "sigmoid", "gamma": 1e-4}, {"kernel": "linear"}], ids=str
)
def test_tensors_of_integers_are_fitted_saved_and_encoded_like_floats(parameters, kind, tmp_path):
    whole = torch.from_numpy(np.random.RandomState(0).randint(0, 9, (40, 3))).to(kind)
    model = KernelPCA(2, **parameters).fit(whole)
    known = KernelPCA(2, **parameters).fit(whole.double())
    codes = model.transform(whole)
    assert torch.equal(codes, known.transform(whole.double()))
    model.save(tmp_path / "model")
    assert torch.equal(drkm.load(tmp_path / "model").transform(whole), codes)


def test_a_matrix_of_integers_is_taken_as_one_of_floats(tmp_path):
    whole = torch.from_numpy(np.random.RandomState(0).randint(0, 9, (30, 3)))
    model = KernelPCA(2, kernel="precomputed").fit(whole @ whole.T)
    model.save(tmp_path / "model")
    again = drkm.load(tmp_path / "model")
    assert torch.equal(again.transform((whole @ whole.T)[:5]), model.transform((whole @ whole.T)[:5].double()))


def test_integers_reach_their_device_in_their_small_type(monkeypatch):
    places = []
    monkeypatch.setattr(
        "drkm.inputs.place", lambda tensor, *others: places.append(tensor.dtype) or tensor.to(others[1])
    )
    KernelPCA(2).fit(torch.from_numpy(np.arange(40, dtype=np.uint8).reshape(10, 4)))
    assert places == [torch.uint8]


@pytest.mark.parametrize("parameters", OF_SCIKIT, ids=lambda part: str(part["kernel"])[:9])
def test_a_kernel_of_scikit_learn_has_the_precision_that_is_asked_for(parameters, tmp_path):
    for rows in (X, torch.from_numpy(X), scipy.sparse.csr_matrix(X)):
        if parameters.get("kernel") not in ("sigmoid", "poly") and scipy.sparse.issparse(rows):
            continue
        exact = KernelPCA(2, **parameters).fit(rows)
        for dtype in ("float32", torch.float32, np.float32):
            model = KernelPCA(2, dtype=dtype, **parameters).fit(rows)
            parts = (model.X_fit_, model.eigenvalues_, model.eigenvectors_, model.transform(rows))
            assert {str(part.dtype).removeprefix("torch.") for part in parts} == {"float32"}
            np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-3)
    single = KernelPCA(2, dtype="float64", **parameters).fit(X.astype(np.float32))
    assert {single.X_fit_.dtype, single.transform(X.astype(np.float32)).dtype} == {np.dtype(np.float64)}
    if isinstance(parameters["kernel"], str):
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(drkm.load(tmp_path / "model").transform(X), model.transform(X))


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed", "linear"])
@pytest.mark.parametrize(("name", "value"), [("device", "gpu"), ("device", "meta"), ("dtype", "half"), ("dtype", "x")])
def test_a_device_and_a_precision_are_checked_whoever_computes_the_kernel(kernel, name, value):
    with pytest.raises(ValueError, match=f"^{name}: .*{value}"):
        KernelPCA(2, kernel=kernel, **{name: value}).fit(X @ X.T)


@pytest.mark.parametrize("solver", ["dense", "arpack", "auto"])
def test_a_matrix_that_is_not_symmetric_has_the_numbers_of_scikit_learn(solver):
    K = X @ X.T
    K[np.triu_indices(60, 1)] *= 0.5
    theirs = sklearn.decomposition.KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(K.copy())
    model = KernelPCA(3, kernel="precomputed", eigen_solver=solver).fit(K.copy())
    np.testing.assert_allclose(model.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(model.eigenvectors_, theirs.eigenvectors_, atol=1e-9)


def test_a_matrix_that_is_symmetric_up_to_rounding_keeps_its_bits():
    K = X @ X.T
    half = KernelPCA(3, kernel="precomputed").fit(np.triu(K) + np.triu(K, 1).T)
    noisy = np.triu(K) + np.tril(K * (1 + 1e-15), -1)
    np.testing.assert_allclose(KernelPCA(3, kernel="precomputed").fit(noisy).eigenvalues_, half.eigenvalues_)


@pytest.mark.parametrize("kernel", [kernels.RBF(), kernels.Linear(), FeatureMap(torch.sin)], ids=repr)
def test_a_kernel_object_refuses_sparse_samples_in_one_sentence(kernel):
    words = r"^X: expected dense samples for the kernel object \w+, got a sparse matrix: use \.toarray\(\)$"
    with pytest.raises(TypeError, match=words):
        KernelPCA(2, kernel=kernel).fit(scipy.sparse.csr_matrix(X))


def test_a_trainable_feature_map_is_left_to_the_class_that_trains_it():
    map_ = FeatureMap(torch.nn.Linear(4, 3), trainable=True)
    with pytest.raises(ValueError, match=r"^kernel: .* trainable=False, .* got trainable=True: use ConstrDRKM"):
        KernelPCA(2, kernel=map_).fit(X)


def approximations(like):
    given = NystroemFeatures(kernels.RBF(4.0), torch.from_numpy(X[:20]).to(like))
    drawn = FourierFeatures.drawn(kernels.RBF(4.0), 4, 50, orthogonal=True, random_state=0, like=like)
    return [given, given.in_same_basis, drawn, FourierFeatures(drawn.kernel, drawn.frequencies)]


@pytest.mark.parametrize("i", range(4), ids=["landmarks", "factor", "draw", "frequencies"])
@pytest.mark.parametrize("made", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_approximation_as_kernel_takes_the_precision_of_the_samples(kind, made, i, tmp_path):
    kernel = approximations(torch.empty(0, dtype=made))[i]
    known = KernelPCA(2, kernel=approximations(torch.empty(0, dtype=torch.float64))[i]).fit(X)
    rows, model = X.astype(kind), KernelPCA(2, kernel=kernel)
    codes = model.fit(rows).transform(NEW.astype(kind))
    assert codes.dtype == kind
    assert_same_codes(model, known, NEW.astype(kind), atol=1e-3)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(drkm.load(tmp_path / "model").transform(NEW.astype(kind)), codes)
    layer = ConstrDRKM(2, kernel=kernel, dtype="float32").fit(rows)
    assert layer.codes_.dtype == np.float32
    with pytest.raises(ValueError, match=r"^kernel: \w+ are for points of 4 features, got 3$"):
        KernelPCA(2, kernel=kernel).fit(rows[:, :3])


def test_an_approximation_as_kernel_takes_float64_where_float32_leaves_nothing_to_centre():
    wide = FourierFeatures.drawn(kernels.RBF(1e9), 4, 50, orthogonal=True, random_state=0, like=torch.empty(0).double())
    single = X.astype(np.float32)
    known = KernelPCA(3, kernel=wide).fit(single.astype(np.float64)).eigenvalues_
    np.testing.assert_allclose(KernelPCA(3, kernel=wide).fit(single).eigenvalues_, known, rtol=1e-5)


EXPLICIT = [
    {"kernel": "rbf", "gram": gram.Nystroem(30)},
    {"kernel": "rbf", "gram": gram.Fourier(30)},
    {"kernel": FeatureMap(torch.sin, normalize=False)},
]


@pytest.mark.parametrize("parameters", EXPLICIT, ids=str)
def test_features_of_new_points_are_computed_for_some_at_a_time_with_the_same_bits(parameters, monkeypatch):
    many = np.random.RandomState(2).randn(5000, 4)
    model = KernelPCA(2, **parameters).fit(X)
    kind, seen = type(model.kernel_), []
    whole = model._projection
    with torch.no_grad():
        expected = whole.kernel.features(torch.from_numpy(many)) @ whole.weights - whole.shift
    features = kind.features
    monkeypatch.setattr(kind, "features", lambda self, x: seen.append(len(x)) or features(self, x))
    monkeypatch.setattr("drkm.kernels.base.FEATURE_ENTRIES", {"cpu": 1, "cuda": 1})
    np.testing.assert_allclose(model.transform(many), expected.numpy(), rtol=1e-12, atol=1e-14)
    assert max(seen) == kernel_projection.LEAST_ROWS
    assert sum(seen) == 5000


@pytest.mark.parametrize("wanted", [torch.float32, torch.float64])
def test_a_module_of_torch_of_float32_samples_that_need_float64_answers_like_transform(wanted):
    far = (X + 1e4).astype(np.float32)
    for parameters in ({"kernel": "linear"}, {"kernel": "rbf", "gamma": 5.0}, {"kernel": kernels.Polynomial(2)}):
        model = KernelPCA(2, **parameters).fit(far)
        module, new = model.to_torch(), torch.from_numpy(far[:5] + 1).to(wanted)
        expected = torch.from_numpy(model.transform(far[:5] + 1))
        rows = torch.export.Dim("rows", min=2)
        exported = torch.export.export(module, (new,), dynamic_shapes=({0: rows},)).module()
        for answer in (module(new), exported(new)):
            torch.testing.assert_close(answer, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "parameters", [*OF_SCIKIT, {"kernel": "precomputed"}], ids=lambda part: str(part["kernel"])[:9]
)
def test_a_tensor_reaches_a_kernel_of_scikit_learn_as_an_array(parameters, monkeypatch):
    rows = X @ X.T if parameters["kernel"] == "precomputed" else X
    model = KernelPCA(2, **parameters).fit(torch.from_numpy(rows))
    seen, projected = [], kernel_projection.KernelProjection.__call__
    monkeypatch.setattr(
        kernel_projection.KernelProjection, "__call__", lambda self, new: seen.append(type(new)) or projected(self, new)
    )
    model.transform(torch.from_numpy(rows[:5]))
    assert seen == [np.ndarray]


@pytest.mark.gpu
@pytest.mark.parametrize(
    "parameters", [*OF_SCIKIT, {"kernel": "precomputed"}], ids=lambda part: str(part["kernel"])[:9]
)
def test_tensors_on_a_gpu_are_taken_by_kernels_of_scikit_learn(parameters, tmp_path):
    rows = torch.from_numpy(X @ X.T if parameters["kernel"] == "precomputed" else X)
    known = KernelPCA(2, **parameters).fit(rows)
    model = KernelPCA(2, **parameters).fit(rows.cuda())
    codes = model.transform(rows[:5].cuda())
    assert codes.is_cuda
    torch.testing.assert_close(codes.cpu(), known.transform(rows[:5]))
    if isinstance(parameters["kernel"], str):
        model.save(tmp_path / "model")
        for device in ("cuda", "cpu"):
            again = drkm.load(tmp_path / "model", device=device)
            torch.testing.assert_close(again.transform(rows[:5].cuda()), codes)
            torch.testing.assert_close(again.transform(rows[:5]), codes.cpu())


@pytest.mark.gpu
@pytest.mark.parametrize(("parameters", "offset"), FAR, ids=str)
def test_a_gpu_decides_on_the_precision_before_samples_are_rounded(parameters, offset):
    far = X + offset
    known = KernelPCA(2, **parameters).fit(far)
    for given in (far, torch.from_numpy(far).cuda()):
        model = KernelPCA(2, device="cuda", **parameters).fit(given)
        np.testing.assert_allclose(np.asarray(torch.as_tensor(model.eigenvalues_).cpu()), known.eigenvalues_, rtol=1e-6)


@pytest.mark.gpu
def test_an_approximation_as_kernel_takes_the_device_of_the_samples():
    for kernel in approximations(torch.empty(0, dtype=torch.float64)):
        known = KernelPCA(2, kernel=kernel).fit(X)
        model = KernelPCA(2, kernel=kernel, device="cuda").fit(X)
        assert_same_codes(model, known, NEW, atol=1e-3)
        ConstrDRKM(2, kernel=kernel, device="cuda").fit(X)


def test_a_kernel_matrix_that_may_not_be_written_is_left_as_it_is_without_a_copy():
    K = X @ X.T
    K.flags.writeable = False
    parameters = {"kernel": "precomputed", "copy_X": False}
    model, known = KernelPCA(2, **parameters).fit(K), sklearn.decomposition.KernelPCA(2, **parameters).fit(K)
    np.testing.assert_array_equal(K, X @ X.T)
    assert_same_codes(model, known, K)


def test_one_row_or_column_may_run_backwards_in_memory():
    column = X[:, :1]
    model, expected = (KernelPCA(1, kernel="rbf").fit(samples) for samples in (column[:, ::-1], column))
    np.testing.assert_array_equal(model.transform(column[:1][::-1]), expected.transform(column[:1]))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "sigmoid"])
def test_the_number_of_components_may_be_of_any_kind_of_integer(kernel, kind):
    many = np.random.RandomState(2).randn(300, 4)
    model, expected = (KernelPCA(count, kernel=kernel, random_state=0).fit(many) for count in (kind(3), 3))
    np.testing.assert_array_equal(model.eigenvalues_, expected.eigenvalues_)


@pytest.mark.parametrize("preimage", ["ridge", "fixed-point"])
def test_sparse_codes_have_the_points_of_dense_ones(preimage):
    model = KernelPCA(3, kernel="rbf", preimage=preimage).fit(X)
    codes = model.transform(NEW)
    found = model.inverse_transform(scipy.sparse.csr_matrix(codes))
    np.testing.assert_array_equal(found, model.inverse_transform(codes))


@pytest.mark.parametrize("solver", ["auto", "arpack", "dense", "randomized"])
def test_a_kernel_matrix_in_columns_has_the_components_of_one_in_rows_and_is_not_copied(solver, monkeypatch):
    rows = np.exp(-np.square(np.random.RandomState(0).randn(300, 1) - np.random.RandomState(0).randn(1, 300)))
    seen = []
    operator = blas.symmetric_operator
    monkeypatch.setattr(blas, "symmetric_operator", lambda K: seen.append(K.flags.c_contiguous) or operator(K))
    known, found = (
        KernelPCA(3, kernel="precomputed", eigen_solver=solver, random_state=0).fit(K)
        for K in (rows, np.asfortranarray(rows))
    )
    np.testing.assert_allclose(found.eigenvalues_, known.eigenvalues_, rtol=1e-9)
    assert_same_codes(found, known, rows[:7])
    assert all(seen)


def test_the_width_of_a_kernel_object_is_a_parameter_of_a_search():
    model = KernelPCA(2, kernel=kernels.RBF(2.0), gram=gram.Nystroem(20))
    assert {"kernel__sigma2", "gram__m"} <= set(model.get_params())
    assert "kernel__sigma2" not in model.get_params(deep=False)
    wider = clone(model).set_params(kernel__sigma2=8.0)
    assert (model.kernel, wider.kernel) == (kernels.RBF(2.0), kernels.RBF(8.0))
    search = GridSearchCV(
        make_pipeline(KernelPCA(2, kernel=kernels.RBF(2.0)), Ridge()), {"kernelpca__kernel__sigma2": [0.1, 9.0]}
    )
    scores = search.fit(X, X[:, 0]).cv_results_["mean_test_score"]
    expected = [
        cross_val_score(make_pipeline(KernelPCA(2, kernel="rbf", gamma=0.5 / sigma2), Ridge()), X, X[:, 0]).mean()
        for sigma2 in (0.1, 9.0)
    ]
    np.testing.assert_allclose(scores, expected)
    with pytest.raises(ValueError, match=r"^kernel__nu: unknown parameter, kernel is RBF"):
        model.set_params(kernel__nu=1.5)
