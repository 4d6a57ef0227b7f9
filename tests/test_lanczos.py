"""Lanczos without restarts: the eigenpairs of LAPACK, or none at all."""

from __future__ import annotations

import numpy as np
import pytest

from drkm.problem.lanczos import leading_by_lanczos

EPS = float(np.finfo(np.float64).eps)


def symmetric(values: np.ndarray) -> np.ndarray:
    Q = np.linalg.qr(np.random.RandomState(0).randn(len(values), len(values)))[0]
    return (Q * values) @ Q.T


def found(K: np.ndarray, count: int, tol: float = EPS) -> tuple[np.ndarray, np.ndarray] | None:
    start = np.random.RandomState(1).uniform(-1, 1, len(K)).astype(K.dtype)
    return leading_by_lanczos(lambda v: K @ v, start, count, tol)


@pytest.mark.parametrize("count", [1, 10, 50])
def test_eigenpairs_of_a_spectrum_that_decays_are_those_of_lapack(count):
    K = symmetric(100 * np.exp(-np.arange(300) / 8))
    pairs = found(K, count)
    assert pairs is not None
    values, vectors = pairs
    # Rounding of K is relative to its norm.
    rounding = 50 * EPS * 100
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[-count:], rtol=0, atol=rounding)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=100 * EPS)
    assert np.linalg.norm(K @ vectors - vectors * values, axis=0).max() <= rounding


def test_numbers_of_float32_stay_such():
    pairs = found(symmetric(np.exp(-np.arange(200.0))).astype(np.float32), 3, 1e-6)
    assert pairs is not None
    assert {part.dtype for part in pairs} == {np.dtype(np.float32)}


def test_a_spectrum_that_does_not_decay_is_left_to_others():
    assert found(symmetric(1 + np.linspace(0, 1e-3, 400)), 10) is None


def test_an_invariant_subspace_that_is_too_small_is_left_to_others():
    assert found(symmetric(np.where(np.arange(300) < 5, 1.0, 0.0)), 10) is None
