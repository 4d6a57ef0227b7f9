"""From codes back to points by a kernel ridge regression, which `fit` learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from drkm.machine import memory
from drkm.machine.layout import aligned
from drkm.validation import checks
from drkm.validation.samples import as_array, check_codes, real_numbers

#: n×n matrices of the regression: kernel values, what of them is finite, and a copy that LAPACK makes
MATRICES = 2.125


def check_room(n: int, item: int) -> None:
    """Raise an error if the regression on the codes of n samples, which needs their kernel matrix, has no room."""
    advice = 'preimage="fixed-point" or "gradient" need no regression'
    memory.require(int(MATRICES * n * n * item), "cpu", f"fit_inverse_transform: a regression on {n} samples", advice)


def coefficients(kernel: Any, Z: Any, points: Any, alpha: float, precision: str) -> np.ndarray:
    """Return the coefficients (K + αI)⁻¹X of the regression from codes Z to points, in the precision of the points."""
    from scipy.linalg import solve

    if not Z.shape[1]:
        raise ValueError("X: no component has a positive eigenvalue, so that there are no codes to learn from")
    K = values_on_codes(kernel, Z, Z, precision)
    X = as_array(points)
    if not np.isfinite(K).all():
        raise ValueError("kernel: its values on codes are NaN or infinite, divide the data by their typical size")
    K[np.diag_indices_from(K)] += alpha
    try:
        return solve(K, X, assume_a="pos", overwrite_a=True).astype(X.dtype, copy=False)
    except np.linalg.LinAlgError as error:
        told = f"alpha: with {alpha} the regression of fit_inverse_transform is singular, take a larger number"
        raise np.linalg.LinAlgError(told) from error


def values_on_codes(kernel: Any, Z: Any, centres: Any, precision: str) -> np.ndarray:
    """Return the values of a kernel on codes; our own kernels compute them on the CPU, in this precision."""
    if not kernel.is_of_torch:
        with np.errstate(over="ignore", invalid="ignore"):
            return kernel(as_array(Z), as_array(centres))
    import torch

    pair = (aligned(torch.as_tensor(part).to("cpu", getattr(torch, precision))) for part in (Z, centres))
    return np.asarray(kernel(*pair))


def read_codes(X: Any, names: np.ndarray, precision: str) -> np.ndarray:
    """Return codes with these names as an array in this precision."""
    if checks.is_tensor(X):
        given = as_array(checks.dense_real("X", X).detach().double())
    else:
        given = as_array(X) if checks.is_sparse(X) else X
    codes = real_numbers("X", given)
    check_codes("X", codes, X, names)
    return codes.astype(precision, copy=False)
