"""Eigenvalues and eigenpairs of symmetric and tridiagonal matrices in the memory of a CPU, by LAPACK."""

from __future__ import annotations

import numpy as np

from drkm.machine.threads import SMALL, one_thread_of_blas

#: up to this share of the spectrum, and that of many rows, LAPACK's search for some eigenpairs is faster than its
#: algorithm for all
SOME, SOME_OF_MANY, MANY = 0.2, 0.25, 1200
#: n×n matrices of the workspace of its algorithm for all
ALL_WORKSPACE = 2.25


def leading_by_lapack(K: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` largest eigenvalues of a symmetric matrix in ascending order, and their eigenvectors.

    Those of a small matrix have the same bits with any number of threads, and if several threads ask for them.
    """
    with one_thread_of_blas(K.size < SMALL):
        return _leading(K, count)


def numbers_of_lapack(n: int, count: int) -> int:
    """Return how many numbers `leading_by_lapack` holds besides the matrix: a copy, and vectors or their workspace."""
    return n**2 + (3 * n * count if _are_some(n, count) else int(ALL_WORKSPACE * n**2))


def _are_some(n: int, count: int) -> bool:
    return count <= (SOME if n < MANY else SOME_OF_MANY) * n


def _leading(K: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import eigh

    n = len(K)
    if _are_some(n, count):
        # Transposed, because LAPACK stores columns and would otherwise get a copy.
        values, vectors = eigh(K.T, subset_by_index=(n - count, n - 1), check_finite=False)
        if len(values) == count:
            return values, vectors
        # The search can silently lose some of many nearly equal eigenvalues.
    # Before version 1.12 scipy asks for too little memory for the fast algorithm if there is one number.
    values, vectors = eigh(K.T, driver="evd" if n > 1 else None, check_finite=False)
    return values[-count:], vectors[:, -count:]


def count_above(K: np.ndarray, threshold: float) -> int:
    """Return how many eigenvalues of a symmetric matrix, which is overwritten, are above a threshold.

    By Sylvester's law of inertia as many as pivots of K - tI = LDLᵀ are positive, which takes a tenth of the time of
    the eigenvalues. Every 2×2 block of D, marked by a negative index, has one positive eigenvalue.
    """
    from scipy.linalg.lapack import dsytrf, dsytrf_lwork

    K[np.diag_indices_from(K)] -= threshold
    work, _ = dsytrf_lwork(len(K))
    D, index, _ = dsytrf(K.T, lwork=int(work), overwrite_a=True)
    single = index > 0
    return int((D.diagonal()[single] > 0).sum()) + int((~single).sum()) // 2


def tridiagonal_eigenpairs(diagonal: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues of a symmetric tridiagonal matrix in ascending order, and their eigenvectors."""
    from scipy.linalg import eigh_tridiagonal

    try:
        return eigh_tridiagonal(diagonal, beside, check_finite=False)
    except np.linalg.LinAlgError:
        # The default algorithm, the fastest, gives up on some matrices with multiple eigenvalues, depending on the
        # CPU; QR iterations do not.
        return eigh_tridiagonal(diagonal, beside, check_finite=False, lapack_driver="stev")
