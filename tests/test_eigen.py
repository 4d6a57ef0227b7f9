from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch

from dense_oracle import draw, orthonormal, structured
from drkm.arrays.lapack import count_above
from drkm.gram import Centered, FeatureGram, StoredGram, SweptGram
from drkm.kernels import RBF, Linear
from drkm.problem import eigen
from drkm.problem.eigen import leading_eigenpairs

DOUBLE = torch.empty(0, dtype=torch.float64)
SINGLE = torch.empty(0, dtype=torch.float32)


class Counting(StoredGram):
    """A stored matrix that counts the columns it is multiplied with and refuses to be read."""

    columns = 0

    def matmul(self, A):
        self.columns += A.shape[1]
        return super().matmul(A)

    def rows(self, index):
        raise AssertionError("the iterative path must not read the matrix")


def kernel_matrix(n: int, sigma2: float = 20.0) -> torch.Tensor:
    X = structured(n)
    return RBF(sigma2)(X, X)


def projected(K: torch.Tensor, Q: torch.Tensor) -> torch.Tensor:
    P = torch.eye(len(K)).double() - Q @ Q.T
    return P @ K @ P


def reference(K: torch.Tensor, count: int) -> tuple[np.ndarray, np.ndarray]:
    n = len(K)
    values, vectors = scipy.linalg.eigh(K.numpy(), subset_by_index=[n - count, n - 1])
    return values[::-1], vectors[:, ::-1]


def check(pairs, K: torch.Tensor, count: int, tol: float = 1e-9):
    values, _ = reference(K, count)
    V = pairs.vectors.double()
    assert pairs.vectors.shape == (len(K), count)
    assert (pairs.values.diff() <= 1e-12).all()
    np.testing.assert_allclose(pairs.values.double().numpy(), values, atol=tol * values[0])
    assert (V.T @ V - torch.eye(count).double()).norm() <= max(tol, 1e-12)
    assert (K @ V - V * pairs.values.double()).norm() <= 10 * tol * values[0]


@pytest.mark.parametrize(("n", "count"), [(2, 1), (2, 2), (50, 5), (200, 50), (201, 3), (300, 60), (500, 10), (900, 4)])
def test_equals_scipy_for_small_and_large_problems(n, count):
    K = kernel_matrix(n)
    check(leading_eigenpairs(StoredGram(K), count, like=DOUBLE), K, count)


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("q", [1, 7])
def test_stays_outside_the_given_directions(n, q):
    K, Q = kernel_matrix(n), orthonormal(n, q)
    pairs = leading_eigenpairs(StoredGram(K), 6, like=DOUBLE, outside=Q)
    assert (Q.T @ pairs.vectors).abs().max() < 1e-12
    check(pairs, projected(K, Q), 6)


@pytest.mark.parametrize("n", [60, 400])
def test_stays_outside_the_leading_eigenvectors_themselves(n):
    K = kernel_matrix(n)
    Q = torch.from_numpy(reference(K, 5)[1].copy())
    pairs = leading_eigenpairs(StoredGram(K), 3, like=DOUBLE, outside=Q)
    np.testing.assert_allclose(pairs.values.numpy(), reference(K, 8)[0][5:], rtol=1e-7)
    assert (Q.T @ pairs.vectors).abs().max() < 1e-10


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("rank", [1, 3])
def test_a_matrix_of_low_rank_still_gives_orthonormal_vectors(n, rank):
    X = draw(n, rank)
    pairs = leading_eigenpairs(FeatureGram(Linear(), X), 6, like=DOUBLE)
    assert torch.isfinite(pairs.vectors).all()
    check(pairs, X @ X.T, 6)


@pytest.mark.parametrize("n", [60, 400])
def test_a_matrix_of_low_rank_with_its_range_outside_gives_vectors_off_that_range(n):
    X = draw(n, 3)
    Q = torch.linalg.qr(X)[0]
    pairs = leading_eigenpairs(FeatureGram(Linear(), X), 4, like=DOUBLE, outside=Q)
    V = pairs.vectors
    assert (Q.T @ V).abs().max() < 1e-10
    assert (V.T @ V - torch.eye(4).double()).norm() < 1e-10
    assert pairs.values.abs().max() < 1e-9 * n


@pytest.mark.parametrize("n", [60, 400])
def test_a_zero_matrix_gives_orthonormal_vectors(n):
    pairs = leading_eigenpairs(StoredGram(torch.zeros(n, n).double()), 4, like=DOUBLE)
    assert (pairs.vectors.T @ pairs.vectors - torch.eye(4).double()).norm() < 1e-12
    assert pairs.values.abs().max() == 0


@pytest.mark.parametrize("n", [60, 400])
def test_repeated_eigenvalues_are_found_as_often_as_they_occur(n):
    Q = orthonormal(n, 8)
    K = (Q * torch.tensor([5.0, 5.0, 5.0, 2.0, 2.0, 1.0, 0.5, 0.1]).double()) @ Q.T
    pairs = leading_eigenpairs(StoredGram(K), 5, like=DOUBLE)
    torch.testing.assert_close(pairs.values, torch.tensor([5.0, 5.0, 5.0, 2.0, 2.0]).double(), rtol=1e-9, atol=0)


@pytest.mark.parametrize("n", [60, 400])
def test_operators_that_are_not_stored_and_centred_ones_work_alike(n):
    X = structured(n)
    C = torch.eye(n).double() - 1 / n
    pairs = leading_eigenpairs(Centered(SweptGram(RBF(20.0), X)), 5, like=DOUBLE)
    check(pairs, C @ RBF(20.0)(X, X) @ C, 5)


@pytest.mark.parametrize("n", [60, 400])
def test_float32_is_right_to_float32(n):
    K = kernel_matrix(n)
    pairs = leading_eigenpairs(StoredGram(K.float()), 5, like=SINGLE)
    assert pairs.values.dtype == pairs.vectors.dtype == torch.float32
    check(pairs, K, 5, tol=2e-5)


def test_large_problems_never_read_the_matrix_and_take_few_products():
    K = kernel_matrix(800)
    gram = Counting(K)
    pairs = leading_eigenpairs(gram, 5, like=DOUBLE)
    check(pairs, K, 5)
    assert gram.columns < 300


def test_the_reported_residual_is_the_true_one():
    K = kernel_matrix(500)
    loose = leading_eigenpairs(StoredGram(K), 5, like=DOUBLE, tol=1e-3)
    true = (K @ loose.vectors - loose.vectors * loose.values).norm(dim=0).max() / loose.values[0]
    assert loose.residual <= 1e-3
    assert loose.residual == pytest.approx(true.item(), rel=1e-6)


def test_a_looser_tolerance_costs_fewer_products():
    loose, tight = Counting(kernel_matrix(500)), Counting(kernel_matrix(500))
    leading_eigenpairs(loose, 5, like=DOUBLE, tol=1e-2)
    leading_eigenpairs(tight, 5, like=DOUBLE, tol=1e-10)
    assert loose.columns < tight.columns


def test_restarts_reach_a_slowly_decaying_spectrum(monkeypatch):
    monkeypatch.setattr(eigen, "MAX_BLOCKS", 3)
    n = 300
    Q = orthonormal(n, n)
    K = (Q * torch.linspace(1.0, 0.1, n).double()) @ Q.T
    pairs = leading_eigenpairs(StoredGram(K), 3, like=DOUBLE, tol=1e-8, max_passes=2000)
    np.testing.assert_allclose(pairs.values.numpy(), torch.linspace(1.0, 0.1, n)[:3].numpy(), rtol=1e-6)


def test_the_limit_on_products_ends_the_iteration_with_a_truthful_residual():
    n = 300
    Q = orthonormal(n, n)
    K = (Q * torch.linspace(1.0, 0.9, n).double()) @ Q.T
    pairs = leading_eigenpairs(StoredGram(K), 3, like=DOUBLE, max_passes=2)
    assert pairs.residual > 1e-6


def test_two_calls_agree_in_every_bit_whatever_the_global_generator_does():
    K = kernel_matrix(400)
    first = leading_eigenpairs(StoredGram(K), 5, like=DOUBLE)
    torch.rand(7)
    second = leading_eigenpairs(StoredGram(K), 5, like=DOUBLE)
    assert torch.equal(first.vectors, second.vectors)
    assert torch.equal(first.values, second.values)


def test_a_dense_solver_finds_no_more_eigenpairs_than_are_needed():
    K = kernel_matrix(120)
    check(leading_eigenpairs(StoredGram(K), 40, like=DOUBLE, needed=20), K, 20)
    K = kernel_matrix(400)
    check(leading_eigenpairs(StoredGram(K), 20, like=DOUBLE, needed=10, tol=1e-5), K, 20, tol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 60, 300])
def test_eigenvalues_above_a_threshold_are_counted_without_finding_them(n):
    K = kernel_matrix(n).numpy()
    values = np.linalg.eigvalsh(K)
    for threshold in (0.5, 1.01, 1e-3):
        assert count_above(K.copy(), threshold) == (values > threshold).sum()
    assert count_above(-K, 0.0) == 0
    # Pivots of 2×2: the diagonal is zero.
    assert count_above(np.kron(np.eye(n), [[0.0, 1.0], [1.0, 0.0]]), 0.0) == n
