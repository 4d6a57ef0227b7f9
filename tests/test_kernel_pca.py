"""KernelPCA: scikit-learn's own tests and checks, and what is ours."""

import mmap
import os
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from drkm import KernelPCA
from drkm.arrays import half
from drkm.arrays.exponents import Exponents, add_product
from drkm.arrays.forms import Gaussian
from drkm.gram import Nystroem, TiledGram
from drkm.kernels import RBF, Matern, Polynomial
from drkm.machine import blas
from drkm.machine.pages import PAGE, empty, upper_triangle
from drkm.training import kernel_components

#: where Linux says which pages are in memory, in eight bytes for each
PAGES = Path("/proc/self/pagemap")
#: run in a process of its own: scikit-learn's tests take their class from its package
RUN = """
import sys
import pytest
import sklearn.decomposition
from drkm import KernelPCA

sklearn.decomposition.KernelPCA = KernelPCA
class Seen:
    def pytest_collection_modifyitems(self, items):
        assert items
        for item in items:
            assert item.module.KernelPCA is KernelPCA
        print(f"{len(items)} cases of drkm")
sys.exit(pytest.main(sys.argv[1:], plugins=[Seen()]))
"""


def test_all_tests_of_scikit_learn_pass(tmp_path):
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    theirs = Path(sklearn.decomposition.__file__).parent / "tests" / "test_kernel_pca.py"
    command = [sys.executable, "-c", RUN, str(theirs), *options]
    seeds = {**os.environ, "SKLEARN_TESTS_GLOBAL_RANDOM_SEED": "0-1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=seeds)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "cases of drkm" in done.stdout
    assert "skipped" not in done.stdout


@parametrize_with_checks([KernelPCA(), KernelPCA(n_components=2, kernel="rbf"), KernelPCA(1, kernel="sigmoid")])
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)


def samples(n, d=6, seed=0):
    return np.random.RandomState(seed).randn(n, d) * np.arange(1, d + 1)


def both(k, **parameters):
    return KernelPCA(k, **parameters), sklearn.decomposition.KernelPCA(k, **parameters)


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.02},
    {"kernel": "poly", "degree": 2},
    {"kernel": "poly", "degree": 2.5, "coef0": 500.0},
    {"kernel": "sigmoid", "gamma": 1e-3},
    {"kernel": "cosine"},
]


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack"])
@pytest.mark.parametrize("d", [6, 90])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_numbers_are_those_of_scikit_learn(kernel, d, solver):
    X = samples(300, d) / d
    ours, theirs = both(4, eigen_solver=solver, random_state=0, **kernel)
    codes = theirs.fit_transform(X)
    scale = max(np.abs(codes).max(), 1e-6)
    np.testing.assert_allclose(ours.fit_transform(X), codes, atol=1e-8 * scale)
    np.testing.assert_allclose(ours.transform(X[:9] + 0.1), theirs.transform(X[:9] + 0.1), atol=1e-8 * scale)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-9 * max(theirs.eigenvalues_[0], 1e-9))
    assert ours.gamma_ == theirs.gamma_
    np.testing.assert_array_equal(ours.X_fit_, theirs.X_fit_)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [150, 1300])
def test_precision_is_that_of_the_samples_unless_asked_otherwise(n, kind):
    X = samples(n).astype(kind)
    ours, theirs = both(3, kernel="rbf", gamma=0.01)
    codes = theirs.fit_transform(X)
    assert ours.fit_transform(X).dtype == ours.transform(X).dtype == ours.eigenvalues_.dtype == kind
    np.testing.assert_allclose(ours.transform(X), codes, atol=2e-4 if kind == np.float32 else 1e-9)
    assert KernelPCA(3, kernel="rbf", dtype="float64").fit(X).transform(X).dtype == np.float64


def test_sparse_samples_functions_and_matrices_are_taken():
    X = samples(40)
    dense = KernelPCA(3, kernel="rbf").fit(X)
    sparse = KernelPCA(3, kernel="rbf").fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.transform(scipy.sparse.csr_array(X[:5])), dense.transform(X[:5]), atol=1e-9)
    function = KernelPCA(3, kernel=lambda x, y, power: (x @ y) ** power, kernel_params={"power": 2}).fit(X)
    matrix = KernelPCA(3, kernel="precomputed").fit((X @ X.T) ** 2)
    np.testing.assert_allclose(function.transform(X[:5]), matrix.transform((X[:5] @ X.T) ** 2), atol=1e-6)


def test_a_kernel_object_brings_its_own_width():
    X = samples(300)
    by_rule = KernelPCA(3, kernel=RBF("median")).fit(X)
    gamma = 0.5 / by_rule.kernel_.sigma2
    np.testing.assert_allclose(by_rule.transform(X), KernelPCA(3, kernel="rbf", gamma=gamma).fit(X).transform(X))
    assert KernelPCA(3, kernel=Matern(1.5)).fit(X).transform(X[:2]).shape == (2, 3)


def torus(m):
    """A grid of m×m points on a torus: eigenvalues of its kernel matrix are up to eightfold."""
    angle = 2 * np.pi * np.arange(m) / m
    first, second = (one.ravel() for one in np.meshgrid(angle, angle))
    return np.column_stack([np.cos(first), np.sin(first), np.cos(second), np.sin(second)])


def lattice(m):
    """A grid of m³ points in a cube."""
    return np.stack(np.meshgrid(*[np.arange(m) - (m - 1) / 2] * 3), axis=-1).reshape(-1, 3) / 2


@pytest.mark.parametrize("tol", [0, 1e-3])
@pytest.mark.parametrize("solver", ["auto", "arpack"])
@pytest.mark.parametrize("count", [5, 10, 20])
@pytest.mark.parametrize("X", [torus(16), lattice(7)], ids=["torus", "lattice"])
def test_no_eigenvector_of_a_multiple_eigenvalue_is_left_out(X, count, solver, tol):
    known = KernelPCA(count, kernel="rbf", gamma=0.5, eigen_solver="dense").fit(X)
    found = KernelPCA(count, kernel="rbf", gamma=0.5, eigen_solver=solver, tol=tol, random_state=0).fit(X)
    np.testing.assert_allclose(found.eigenvalues_, known.eigenvalues_, rtol=max(tol, 1e-9))
    np.testing.assert_allclose(found.eigenvectors_.T @ found.eigenvectors_, np.eye(count), atol=max(tol, 1e-9))


def cube(m):
    """A grid of m³ points with whole coordinates."""
    return np.stack(np.meshgrid(*[np.arange(m)] * 3), axis=-1).reshape(-1, 3).astype(float)


@pytest.mark.parametrize(
    ("X", "count", "kernel"),
    [
        (cube(9), 41, Matern(1.5, 4.0)),
        (np.random.RandomState(0).randint(0, 3, (599, 4)).astype(float), 15, RBF(0.06)),
        (np.repeat(samples(100, 3), 4, axis=0), 20, RBF(0.1)),
    ],
    ids=["cube", "whole numbers", "repeated rows"],
)
def test_nothing_is_left_out_of_spectra_whose_eigenvalues_lie_close_together(X, count, kernel):
    known = KernelPCA(count, kernel=kernel, eigen_solver="dense").fit(X)
    for seed in range(3):
        found = KernelPCA(count, kernel=kernel, random_state=seed).fit(X)
        np.testing.assert_allclose(found.eigenvalues_, known.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(found.eigenvectors_.T @ found.eigenvectors_, np.eye(count), atol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["auto", "dense", "arpack"])
def test_all_components_are_found_where_samples_have_nothing_in_common(solver, kind):
    X = (100 * samples(150, 20)).astype(kind)
    model = KernelPCA(7, kernel="rbf", gamma=1.0, eigen_solver=solver).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, np.ones(7), rtol=1e-5)
    np.testing.assert_allclose(model.eigenvectors_.T @ model.eigenvectors_, np.eye(7), atol=1e-5)


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack"])
def test_more_components_than_features_have_the_eigenvalue_zero(solver):
    X = samples(300, 4)
    known = KernelPCA(4).fit(X).eigenvalues_
    for offset in (0, 1e8):
        model = KernelPCA(6, eigen_solver=solver).fit(X + offset)
        np.testing.assert_allclose(model.eigenvalues_[:4], known, rtol=1e-6)
        assert (model.eigenvalues_[4:] == 0).all()
        np.testing.assert_allclose(model.eigenvectors_.T @ model.eigenvectors_, np.eye(6), atol=1e-9)
        assert not model.transform(X + offset)[:, 4:].any()


def test_arpack_leaves_all_components_to_lapack_and_takes_numbers_whose_squares_vanish():
    X = samples(30)
    for count in (30, 40):
        model = KernelPCA(count, kernel="rbf", eigen_solver="arpack").fit(X)
        np.testing.assert_allclose(model.eigenvalues_, KernelPCA(30, kernel="rbf").fit(X).eigenvalues_, atol=1e-12)
    assert not KernelPCA(2, eigen_solver="arpack").fit(X * 1e-170).eigenvalues_.any()


@pytest.mark.parametrize("gram", ["tiled", "dense", Nystroem(m=300)], ids=str)
def test_every_exact_operator_finds_the_same_components(gram):
    X = samples(300)
    known, found = (
        KernelPCA(4, kernel="rbf", gamma=0.01).fit(X),
        KernelPCA(4, kernel="rbf", gamma=0.01, gram=gram).fit(X),
    )
    # Codes of a component change with the error of the eigenvalues over their gap.
    np.testing.assert_allclose(found.eigenvalues_, known.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(found.transform(X[:7]), known.transform(X[:7]), atol=1e-5)


def test_tensors_are_answered_in_kind():
    X = torch.from_numpy(samples(60))
    model = KernelPCA(3, kernel="rbf").fit(X)
    assert isinstance(model.transform(X), torch.Tensor)
    assert isinstance(model.eigenvectors_, torch.Tensor)
    np.testing.assert_allclose(model.transform(X), KernelPCA(3, kernel="rbf").fit(X.numpy()).transform(X.numpy()))


@pytest.mark.parametrize("method", ["fixed-point", "gradient", "ridge"])
def test_inverse_transform_needs_no_flag_with_a_preimage(method):
    X = np.random.RandomState(0).rand(120, 2) * [4.0, 0.0] + [1.0, 2.0]
    model = KernelPCA(8, kernel="rbf", gamma=0.5, alpha=1e-6, preimage=method)
    back = model.inverse_transform(model.fit_transform(X))
    assert np.abs(back - X).max() < 0.05
    assert hasattr(model, "dual_coef_") == (method == "ridge")


def test_inverse_transform_of_nystroem_features_uses_landmarks():
    X = np.random.RandomState(0).rand(120, 2) * [4.0, 0.0] + [1.0, 2.0]
    model = KernelPCA(8, kernel="rbf", gamma=0.5, preimage="fixed-point", gram=Nystroem(m=60)).fit(X)
    assert np.abs(model.inverse_transform(model.transform(X)) - X).max() < 0.05


def test_ridge_is_that_of_scikit_learn():
    X = samples(50)
    ours, theirs = both(3, kernel="rbf", gamma=0.01, fit_inverse_transform=True)
    codes = theirs.fit_transform(X)
    np.testing.assert_allclose(ours.fit(X).inverse_transform(codes), theirs.inverse_transform(codes), atol=1e-8)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 0}, "n_components: .* got 0"),
        ({"kernel": "laplace"}, "kernel: got 'laplace', allowed are linear, poly"),
        ({"gamma": -1.0}, "gamma: .* got -1"),
        ({"eigen_solver": "lobpcg"}, "eigen_solver: got 'lobpcg', allowed are auto"),
        ({"preimage": "best"}, "preimage: got 'best', allowed are None, ridge"),
        ({"gram": "sharded"}, "gram: 'sharded' shares samples"),
        ({"kernel": "sigmoid", "gram": "tiled"}, "gram: 'tiled' needs dense samples and a kernel of ours"),
        ({"kernel": "precomputed", "preimage": "gradient"}, "kernel: .*precomputed"),
    ],
)
def test_wrong_parameters_are_refused_by_name(parameters, words):
    with pytest.raises(ValueError, match=words):
        KernelPCA(**parameters).fit(samples(20))


def half_of(kernel, X):
    return half.of_points(kernel_components.form_of(kernel, torch.from_numpy(X)), X)


@pytest.mark.parametrize("n", [40, 700])
def test_only_one_half_of_the_matrix_is_read(n):
    X = samples(n)
    found = half_of(RBF(30.0), X)
    whole = RBF(30.0)(*[torch.from_numpy(X)] * 2).numpy()
    found.K[np.tril_indices(n, -1)] = np.nan
    block = samples(n, 3, seed=1)
    np.testing.assert_allclose(blas.symmetric_product(found.K, block), whole @ block, atol=1e-10)
    np.testing.assert_allclose(blas.symmetric_product(found.K, block[:, 0]), whole @ block[:, 0], atol=1e-10)
    np.testing.assert_allclose(found.whole(), whole, atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(40, 6), (700, 6), (2200, 6), (700, 90)])
@pytest.mark.parametrize("kernel", [RBF(30.0), Matern(1.5, 30.0), Polynomial(2, 0.1)], ids=str)
def test_the_sum_of_squares_that_is_kept_is_that_of_all_entries(kernel, n, d):
    X = samples(n, d) / d
    K = kernel(*[torch.from_numpy(X)] * 2)
    assert half_of(kernel, X).energy == pytest.approx(float(K.square().sum()), rel=1e-10)


def test_products_that_look_for_what_was_left_out_are_saved_where_nothing_can_be():
    X = samples(600, 4)
    with patch("drkm.arrays.deflation._is_above", side_effect=AssertionError("a search that is not needed")):
        found = KernelPCA(5, kernel="rbf", gamma=0.02).fit(X)
    known = KernelPCA(5, kernel="rbf", gamma=0.02, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(found.eigenvalues_, known.eigenvalues_, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_square_of_many_rows_is_that_of_few(kind, monkeypatch):
    Z = samples(300).astype(kind)
    for whole, square, panel in ((300, 300, 50), (100, 300, 50), (100, 100, 50), (100, 100, 70)):
        for name, rows in (("WHOLE", whole), ("SQUARE", square), ("PANEL", panel)):
            monkeypatch.setattr(blas, name, rows)
        K = np.full((300, 300), np.nan, dtype=kind)
        blas.upper_square(Z, K)
        np.testing.assert_allclose(np.triu(K), np.triu(Z @ Z.T), rtol=1e-5 if kind is np.float32 else 1e-12)


SQUARE_OF_MANY_ROWS = """
import numpy
from drkm.machine import blas
Z = numpy.ones((16_400, 304))
K = numpy.empty((len(Z), len(Z)))
blas.upper_square(Z, K)
assert (K[0] == 304).all() and K[-1, -1] == 304
"""


@pytest.mark.slow
def test_two_threads_of_a_blas_survive_the_square_of_many_rows():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", SQUARE_OF_MANY_ROWS], env=environment, check=True)


@pytest.mark.parametrize("count", [0, 1, 1000, 250_000, 300_000, 700_001])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_memory_in_large_pages_is_memory_like_any_other(count, kind):
    memory = empty(count, kind)
    assert (memory.shape, memory.dtype, count and memory.ctypes.data % 64) == ((count,), kind, 0)
    assert memory.flags.c_contiguous
    memory.fill(2.0)
    assert memory.sum() == 2 * count


def resident(array):
    """Bytes of an array that are in memory."""
    page = mmap.PAGESIZE
    begin, end = array.ctypes.data // page, -(-(array.ctypes.data + array.nbytes) // page)
    with PAGES.open("rb") as pages:
        pages.seek(8 * begin)
        entries = np.frombuffer(pages.read(8 * (end - begin)), dtype=np.uint64)
    # The highest bit says that a page is in memory.
    return page * int((entries >> np.uint64(63)).sum())


@pytest.mark.skipif(not PAGES.exists(), reason="needs what Linux says of pages of memory")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_room_for_an_upper_triangle_takes_five_eighths_of_the_matrix_and_a_page_per_row_at_most(kind):
    n = 4000
    K = upper_triangle(n, kind)
    assert (K.shape, K.dtype, K.ctypes.data % 64) == ((n, n), kind, 0)
    assert resident(K) == 0
    for i in range(0, n, 50):
        K[i : i + 50, i:] = 1.0
    # Half of the matrix in large pages, then a quarter of the other half, where every row begins within a page.
    assert 0.5 * K.nbytes < resident(K) < 0.625 * K.nbytes + n // 2 * mmap.PAGESIZE + PAGE


@pytest.mark.parametrize(("n", "d"), [(300, 5), (300, 80), (1600, 5)])
@pytest.mark.parametrize("copy_X", [True, False])
def test_the_caller_keeps_his_samples_and_the_model_its_own(n, d, copy_X):
    X = np.random.RandomState(0).randn(n, d)
    before = X.copy()
    model = KernelPCA(3, kernel="rbf", copy_X=copy_X).fit(X)
    assert X.tobytes() == before.tobytes()
    assert model.X_fit_.tobytes() == before.tobytes()
    assert np.may_share_memory(model.X_fit_, X) is not copy_X


@pytest.mark.parametrize("d", [5, 80])
@pytest.mark.parametrize("offset", [0.0, 0.5, 3.0, 1e6])
def test_kernel_values_are_those_of_differences_wherever_samples_are(d, offset):
    X, x = np.random.RandomState(0).randn(300, d) + offset, np.random.RandomState(1).randn(40, d) + offset
    model = KernelPCA(4, kernel="rbf", gamma=0.5 / d).fit(X)
    squares = ((x[:, None] - X[None]) ** 2).sum(axis=2)
    values = np.exp(-0.5 / d * squares)
    codes = values @ model._projection.weights.numpy() - model._projection.shift.numpy()
    # Samples at 1e6 have their last digits at 1e-10.
    np.testing.assert_allclose(model.transform(x), codes, atol=1e-12 if offset < 1e6 else 1e-8)


def test_samples_around_zero_are_not_copied_for_new_points():
    X = torch.from_numpy(np.random.RandomState(0).randn(300, 80))
    assert Exponents(RBF(3.0), X).right.points.data_ptr() == X.data_ptr()
    assert Exponents(RBF(3.0), X + 5).origin is not None


@pytest.mark.parametrize("d", [5, 80, 300])
def test_kernel_values_have_the_same_bits_with_any_number_of_threads(d):
    X = np.random.RandomState(0).randn(1600, d)
    rows, A, found, before = torch.from_numpy(X), X[:, :4].copy(), [], torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            K, product = (
                np.triu(half_of(RBF(3.0), X).K),
                TiledGram(RBF(3.0), rows, rows=600).matmul(torch.from_numpy(A)),
            )
            of_arrays, of_tensors = np.zeros((700, 4)), torch.zeros(700, 4, dtype=torch.float64)
            add_product(Exponents(Gaussian(3.0), X), X[:700] + 1, A, of_arrays)
            add_product(Exponents(RBF(3.0), rows), rows[:700] + 1, torch.from_numpy(A), of_tensors)
            found.append((K, product.numpy(), of_arrays, of_tensors.numpy()))
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


def flat(n):
    """Samples whose kernel matrix has nearly equal leading eigenvalues."""
    return np.random.RandomState(0).randn(n, 40)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_eigenpairs_that_have_not_converged_are_told_and_max_iter_bounds_the_products(kind):
    X = flat(700).astype(kind)
    model = KernelPCA(3, kernel="rbf", gamma=0.02, gram="tiled", max_iter=4)
    with pytest.warns(ConvergenceWarning, match=r"^max_iter: after 4 products .* residual .* raise max_iter") as told:
        model.fit(X)
    assert told[0].filename == __file__
    known = KernelPCA(3, kernel="rbf", gamma=0.02, eigen_solver="dense").fit(X)
    rtol = 1e-10 if kind == np.float64 else 1e-4
    with warnings.catch_warnings(action="error"):
        found = model.set_params(max_iter=2000).fit(X)
        np.testing.assert_allclose(found.eigenvalues_, known.eigenvalues_, rtol=rtol)
        model.set_params(max_iter=4, tol=0.5).fit(X)


@pytest.mark.parametrize("d", [2, 5, 40, 300])
@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 0.1, 3.0])
def test_eigenpairs_in_float32_are_not_said_to_be_less_accurate_than_they_can_be(gamma, d):
    X = np.random.RandomState(0).randn(600, d).astype(np.float32)
    with warnings.catch_warnings(action="error"):
        KernelPCA(3, kernel="rbf", gamma=gamma, gram="tiled", dtype="float32").fit(X)
