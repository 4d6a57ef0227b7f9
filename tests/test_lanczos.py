"""Lanczos without restarts: the eigenpairs of LAPACK, or none at all."""

from __future__ import annotations

import numpy as np
import pytest

from drkm.arrays import lanczos
from drkm.arrays.lanczos import Leading, leading_by_lanczos
from drkm.arrays.lapack import leading_by_lapack, tridiagonal_eigenpairs
from drkm.machine import blas

EPS = float(np.finfo(np.float64).eps)


def symmetric(values: np.ndarray) -> np.ndarray:
    Q = np.linalg.qr(np.random.RandomState(0).randn(len(values), len(values)))[0]
    return (Q * values) @ Q.T


def found(K: np.ndarray, count: int, tol: float = 0.0) -> Leading | None:
    start = np.random.RandomState(1).uniform(-1, 1, len(K)).astype(K.dtype)
    return leading_by_lanczos(lambda v: K @ v, start, count, tol)


@pytest.mark.parametrize(("count", "decay"), [(1, 8), (10, 8), (50, 8), (10, 20)])
def test_eigenpairs_of_a_spectrum_that_decays_are_those_of_lapack(count, decay):
    K = symmetric(100 * np.exp(-np.arange(300) / decay))
    pairs = found(K, count)
    assert pairs is not None
    values, vectors, _ = pairs
    # Rounding of K is relative to its norm.
    rounding = 50 * EPS * 100
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[-count:], rtol=0, atol=rounding)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=100 * EPS)
    assert np.linalg.norm(K @ vectors - vectors * values, axis=0).max() <= rounding


def test_the_basis_grows_if_a_spectrum_decays_slowly(monkeypatch):
    grown = []
    longer = lanczos._with_room
    monkeypatch.setattr(lanczos, "_with_room", lambda *arguments: grown.append(arguments[1]) or longer(*arguments))
    assert found(symmetric(np.exp(-np.arange(300) / 2)), 10) is not None
    assert grown == []
    assert found(symmetric(np.exp(-np.arange(300) / 20)), 10) is not None
    assert grown == [3 * 10 + 40 + 1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, blas.ONE_THREAD, blas.ONE_THREAD + 1])
def test_inner_products_are_right_whichever_blas_computes_them(n, dtype):
    a, b = np.random.RandomState(0).randn(2, n).astype(dtype)
    exact = float(a.astype(np.longdouble) @ b.astype(np.longdouble))
    assert blas.inner(a, b) == pytest.approx(exact, abs=float(np.finfo(dtype).eps * np.abs(a * b).sum()))


def test_numbers_of_float32_stay_such():
    pairs = found(symmetric(np.exp(-np.arange(200.0))).astype(np.float32), 3, 1e-6)
    assert pairs is not None
    assert {pairs.values.dtype, pairs.vectors.dtype} == {np.dtype(np.float32)}


def test_a_spectrum_that_does_not_decay_is_left_to_others():
    assert found(symmetric(1 + np.linspace(0, 1e-3, 400)), 10) is None


def test_an_invariant_subspace_that_is_too_small_is_left_to_others():
    assert found(symmetric(np.where(np.arange(300) < 5, 1.0, 0.0)), 10) is None


def energy(K: np.ndarray) -> float:
    return float((K * K).sum())


@pytest.mark.parametrize(
    ("count", "decay", "near"), [(1, 8, 2.0), (10, 3, 1.1), (10, 8, 1.1), (50, 8, 1.1), (1, 20, 2.0)]
)
def test_the_bound_of_the_rest_is_above_the_next_eigenvalue_and_near_it(count, decay, near):
    K = symmetric(100 * np.exp(-np.arange(300) / decay))
    pairs = found(K, count)
    assert pairs is not None
    after = np.linalg.eigvalsh(K)[-count - 1]
    assert after - 1e-12 <= pairs.rest.largest(energy(K)) <= after * near + 1e-5


@pytest.mark.parametrize("twice", [0, 3, 9, 10, 15])
def test_no_eigenvalue_that_was_left_out_is_above_the_bound_of_the_rest(twice):
    values = 100 * np.exp(-np.arange(300) / 8.0)
    K = symmetric(np.insert(values, twice, values[twice])[:300])
    pairs = found(K, 10)
    assert pairs is not None
    # One start vector gives one eigenvector per eigenvalue, unless rounding introduces the other.
    left = K - (pairs.vectors * pairs.values) @ pairs.vectors.T
    assert np.linalg.eigvalsh(left)[-1] <= pairs.rest.largest(energy(K)) * (1 + 1e-9)


def test_residuals_are_asked_for_relative_to_the_eigenvalue_and_never_below_rounding():
    K = symmetric(100 * np.exp(-np.arange(300) / 4))
    steps = []
    for tol in (1e-3, 0.0):
        products = []

        def product(v, products=products):
            products.append(1)
            return K @ v

        pairs = leading_by_lanczos(product, np.random.RandomState(1).uniform(-1, 1, 300), 20, tol)
        assert pairs is not None
        residuals = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
        assert (residuals <= np.maximum(tol * pairs.values, 50 * EPS * 100)).all()
        steps.append(len(products))
    assert steps[0] <= steps[1]


def test_eigenpairs_are_found_where_the_fastest_algorithm_of_lapack_gives_up(monkeypatch):
    import scipy.linalg

    fastest = scipy.linalg.eigh_tridiagonal

    def gives_up(diagonal, beside, lapack_driver="auto", **options):
        # As it did on a lattice of samples with the OpenBLAS of scipy 1.11.
        if lapack_driver == "auto":
            raise np.linalg.LinAlgError("stemr (eigh_tridiagonal) did not converge (LAPACK info=22)")
        return fastest(diagonal, beside, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "eigh_tridiagonal", gives_up)
    diagonal, beside = np.arange(1.0, 7.0), np.full(5, 0.5)
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    values, vectors = tridiagonal_eigenpairs(diagonal, beside)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), rtol=1e-13)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-13)


def test_one_number_is_its_own_eigenvalue():
    values, vectors = leading_by_lapack(np.array([[3.0]]), 1)
    assert values.tolist() == [3.0]
    assert np.abs(vectors).tolist() == [[1.0]]
