"""KernelPCA of arrays on a CPU: by numpy alone, with the bits that a fit by torch has."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from drkm import KernelPCA, load
from drkm.arrays import forms
from drkm.kernel_pca import by_numpy
from drkm.kernels import KINDS
from drkm.machine import devices, elementwise, threads
from drkm.serving import Projection

KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.05},
    "poly": {"kernel": "poly", "gamma": 0.1},
    "cosine": {"kernel": "cosine"},
}


def samples(n, d, seed=0):
    """Rows at an aligned address, on which last bits depend."""
    rows = torch.empty(n, d, dtype=torch.float64).numpy()
    rows[...] = np.random.RandomState(seed).randn(n, d) + 0.3
    return rows


def plain(model):
    return isinstance(model._codes.source, Projection)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "shape", [(90, 5, 4), (90, 5, None), (90, 200, None), (700, 5, 4), (700, 5, None), (1600, 80, 4)]
)
def test_a_fit_by_torch_has_the_same_bits(kernel, shape):
    n, d, count = shape
    X, new = samples(n, d), samples(300, d, seed=1)
    ours = KernelPCA(count, **KERNELS[kernel], random_state=0).fit(X)
    # A device of torch is not a word, and so left to torch.
    other = KernelPCA(count, **KERNELS[kernel], random_state=0, device=torch.device("cpu")).fit(X)
    assert plain(ours)
    assert not plain(other)
    for name in ("eigenvalues_", "eigenvectors_", "X_fit_", "gamma_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(other, name))
    for points in (new[:3], new):
        np.testing.assert_array_equal(ours.transform(points), other.transform(points))


WHOLE_USE = """
import sys, warnings
import numpy as np
import drkm
from sklearn.base import clone

X, path = np.random.RandomState(0).randn(300, 5), sys.argv[1]
for kernel in ("linear", "rbf", "poly", "cosine"):
    model = drkm.KernelPCA(4, kernel=kernel, fit_inverse_transform=True, random_state=0).fit(X)
    codes = clone(model).fit_transform(X)
    assert model.transform(X).shape == model.transform(X[:2].repeat(200, axis=0))[:300].shape == codes.shape
    assert model.inverse_transform(codes).shape == X.shape
    model.save(path)
    assert (drkm.load(path).transform(X) == model.transform(X)).all()
    model.to_numpy().save(path)
    assert drkm.load(path).transform(X).shape == codes.shape
    drkm.KernelPCA(3, kernel=kernel, preimage="gradient").fit(X)
assert "torch" not in sys.modules, sorted(name for name in sys.modules if name.startswith("drkm"))
"""


def test_fits_codes_regressions_and_files_need_no_torch(tmp_path):
    command = [sys.executable, "-c", WHOLE_USE, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "parameters",
    [
        {"dtype": "float32"},
        {"gram": "tiled"},
        {"kernel": "sigmoid", "gamma": 0.01},
        {"kernel": "precomputed"},
        {"kernel": "poly", "degree": 1.5},
        {"kernel": KINDS["RBF"](2.0)},
        {"kernel": "rbf", "gamma": 0.0},
    ],
    ids=str,
)
def test_everything_else_is_left_to_torch_or_scikit_learn(parameters):
    X = samples(50, 5)
    X = np.abs(X @ X.T + 5) if parameters.get("kernel") == "precomputed" else np.abs(X)
    assert not plain(KernelPCA(2, **parameters).fit(X))


def test_a_gpu_is_asked_of_torch_only_if_there_may_be_one(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "DRIVERS", (str(tmp_path / "nothing"),))
    assert devices.may_have_gpu() is not sys.platform.startswith("linux")
    (tmp_path / "driver").touch()
    monkeypatch.setattr(devices, "DRIVERS", (str(tmp_path / "nothing"), str(tmp_path / "driver")))
    assert devices.may_have_gpu()
    monkeypatch.setattr(by_numpy, "may_have_gpu", lambda: True)
    monkeypatch.setattr(by_numpy, "LEAST_ON_GPU", 100)
    assert plain(KernelPCA(2).fit(samples(99, 3)))
    assert not plain(KernelPCA(2).fit(samples(100, 3)))
    assert plain(KernelPCA(2, device="cpu").fit(samples(100, 3)))


def test_whoever_reads_the_log_of_operators_gets_it(caplog):
    with caplog.at_level(logging.INFO, logger="drkm.gram"):
        assert not plain(KernelPCA(2).fit(samples(99, 3)))
    assert "samples" in caplog.text


@pytest.mark.parametrize(
    ("name", "parameters"), [("RBF", {"sigma2": 1.7}), ("Polynomial", {"degree": 4, "gamma": 0.3})]
)
def test_a_form_has_the_values_of_its_kernel(name, parameters):
    kernel = KINDS[name](**parameters)
    form, x, y = forms.named(name, kernel.parameters), samples(7, 3), samples(9, 3, seed=1)
    of_torch = forms.OfTorch(kernel)
    for left, right in (form.factors, of_torch.factors), (of_torch.factors, form.factors):
        exponents = left(x)[0] @ right(y)[1].T
        expected = kernel(torch.from_numpy(x), torch.from_numpy(y)).numpy()
        np.testing.assert_allclose(form.values(exponents.copy()), expected, rtol=1e-12)
        np.testing.assert_allclose(of_torch.values(exponents.copy()), expected, rtol=1e-12)
    if not form.is_isotropic:
        np.testing.assert_allclose(form.diagonal(x), kernel.diagonal(torch.from_numpy(x)), rtol=1e-12)
    assert form.pull_scale == kernel.pull_scale


@pytest.mark.parametrize("name", ["Linear", "Cosine"])
def test_features_of_arrays_are_those_of_the_kernel_in_memory_of_their_own(name):
    x = np.vstack([samples(7, 3), np.zeros((1, 3))])
    phi = forms.FEATURES[name](x)
    np.testing.assert_allclose(phi, KINDS[name]().features(torch.from_numpy(x)), rtol=1e-14)
    assert not np.may_share_memory(phi, x)


def test_exponentials_of_many_numbers_are_those_of_torch_where_numpy_is_slow(monkeypatch):
    numbers, of_torch = -np.random.RandomState(0).rand(37, 53), []
    for has_faster, among in ((False, elementwise.MANY), (True, elementwise.MANY - 1), (True, elementwise.MANY)):
        monkeypatch.setattr(elementwise, "_torch_has_faster_exp", lambda has_faster=has_faster: has_faster)
        form = forms.named("RBF", {"sigma2": 1.0}, among)
        of_torch.append(form.by_torch)
        np.testing.assert_allclose(form.values(numbers.copy()), np.exp(numbers), rtol=1e-15)
    assert of_torch == [False, False, True]


def test_changes_of_the_callers_samples_do_not_change_the_model():
    for order in ("C", "F"):
        X = np.array(samples(60, 4), order=order)
        model = KernelPCA(2, kernel="rbf").fit(X)
        before = model.transform(X[:5])
        points = X[:5].copy()
        X[...] = 0
        np.testing.assert_array_equal(model.transform(points), before)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("count", [1, 2])
def test_points_beyond_the_range_are_refused_by_any_number_of_threads(kernel, count, monkeypatch):
    model = KernelPCA(2, kernel=kernel, gamma=50.0).fit(samples(600, 3))
    points = samples(4000, 3)
    points[17] = 1e308
    monkeypatch.setattr(threads, "count", lambda: count)
    with pytest.raises(ValueError, match=r"^X: the kernel returns NaN or inf for 1 of these points"):
        model.transform(points)


def test_a_thread_has_its_own_count_while_another_one_limits_the_blas():
    before, inside, release = threads.count(), threading.Event(), threading.Event()
    without_torch = threads._imported_torch

    def hold():
        with threads.one_thread_of_blas():
            inside.set()
            release.wait()

    other = threading.Thread(target=hold)
    other.start()
    try:
        inside.wait()
        threads._imported_torch = lambda: None
        seen = threads.count()
        with threads.one_thread_of_blas():
            assert threads.count() == 1
    finally:
        threads._imported_torch = without_torch
        release.set()
        other.join()
    assert seen == max(library.get_num_threads() for library in threads._blas_libraries())
    assert threads.count() == before


@pytest.mark.parametrize("rows", [40, 1])
@pytest.mark.parametrize("columns", [3, 1])
def test_samples_that_are_not_copied_reach_torch_in_any_layout(rows, columns):
    X = samples(40, 3)[:rows, :columns][::-1, ::-1]
    X.flags.writeable = False
    model = KernelPCA(1, kernel="rbf", copy_X=False, preimage="fixed-point").fit(X)
    np.testing.assert_array_equal(model.X_fit_, X)
    assert model.to_torch()(torch.from_numpy(X.copy())).shape == (len(X), 1)


def test_a_search_that_a_kernel_does_not_support_is_refused_at_fit():
    with pytest.raises(TypeError, match=r'^preimage: "fixed-point" needs a kernel of distances'):
        KernelPCA(2, kernel="linear", preimage="fixed-point").fit(samples(20, 3))


def test_codes_in_any_tensor_of_real_numbers_have_points_by_regression():
    X = samples(60, 4)
    model = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    codes = torch.from_numpy(model.transform(X[:5])).bfloat16()
    expected = model.inverse_transform(codes.double().numpy())
    np.testing.assert_array_equal(model.inverse_transform(codes).numpy(), expected)
    for odd, words in ((codes.to_sparse(), "a sparse one"), (codes.to(torch.complex64), "a complex one")):
        with pytest.raises(TypeError, match=f"^X: expected a dense real tensor, got {words}"):
            model.inverse_transform(odd)


def test_a_pickle_holds_the_samples_once():
    X = samples(2000, 30)
    model = KernelPCA(2, kernel="rbf").fit(X)
    stored = pickle.dumps(model)
    assert len(stored) < 1.2 * (X.nbytes + 2 * model.eigenvectors_.nbytes)
    np.testing.assert_array_equal(pickle.loads(stored).transform(X[:50]), model.transform(X[:50]))


def test_a_model_of_arrays_answers_in_torch_too(tmp_path):
    X = samples(200, 5)
    model = KernelPCA(3, kernel="rbf", preimage="fixed-point").fit(X)
    model.save(tmp_path / "model")
    for use in (model, load(tmp_path / "model")):
        codes = use.transform(X[:9])
        np.testing.assert_allclose(use.to_torch()(torch.from_numpy(X[:9])).numpy(), codes, atol=1e-12)
        assert use.inverse_transform(codes).shape == (9, 5)
        assert torch.equal(use.transform(torch.from_numpy(X[:9])), torch.from_numpy(codes))
