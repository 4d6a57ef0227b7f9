"""From codes back to points: a kernel ridge regression that is learned in `fit`, or a search for pre-images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm import inputs
from drkm.inference import arguments
from drkm.inference.kernel_projection import KernelProjection
from drkm.inference.subspace import Components, on_landmarks
from drkm.kernel_pca.parameters import SEARCHES
from drkm.kernel_pca.samples import as_array
from drkm.machine import memory
from drkm.training import parameters
from drkm.validation import checks

#: n×n matrices of the regression: kernel values, what of them is finite, and a copy that LAPACK makes
MATRICES = 2.125


def check_room(n: int, item: int) -> None:
    """Raise an error if the regression on the codes of n samples, which needs their kernel matrix, has no room."""
    advice = 'preimage="fixed-point" or "gradient" need no regression'
    memory.require(int(MATRICES * n * n * item), "cpu", f"fit_inverse_transform: a regression on {n} samples", advice)


def ridge_coefficients(kernel: Any, Z: Any, points: Any, alpha: float, dtype: torch.dtype) -> np.ndarray:
    """Return the coefficients (K + αI)⁻¹X of the regression from codes Z to points, in the precision of the points."""
    from scipy.linalg import solve

    if not Z.shape[1]:
        raise ValueError("X: no component has a positive eigenvalue, so that there are no codes to learn from")
    K = values_on_codes(kernel, Z, Z, dtype)
    X = as_array(points)
    if not np.isfinite(K).all():
        raise ValueError("kernel: its values on codes are NaN or infinite, divide the data by their typical size")
    K[np.diag_indices_from(K)] += alpha
    try:
        return solve(K, X, assume_a="pos", overwrite_a=True).astype(X.dtype, copy=False)
    except np.linalg.LinAlgError as error:
        told = f"alpha: with {alpha} the regression of fit_inverse_transform is singular, take a larger number"
        raise np.linalg.LinAlgError(told) from error


def values_on_codes(kernel: Any, Z: Any, centres: Any, dtype: torch.dtype) -> np.ndarray:
    """Return the values of a kernel on codes; our own kernels compute them on the CPU, in this precision."""
    if not kernel.is_of_torch:
        with np.errstate(over="ignore", invalid="ignore"):
            return kernel(as_array(Z), as_array(centres))
    pair = (parameters.array("X", part).to("cpu", dtype) for part in (Z, centres))
    return np.asarray(kernel(*pair))


def read_codes(X: Any, names: np.ndarray, like: Tensor) -> Tensor:
    """Return codes with these names, one for each column of `like`, in its precision."""
    return arguments.codes(X.toarray() if checks.is_sparse(X) else X, names, like, "X")


def written(points: Any, precision: str, like: Any) -> Any:
    """Return points in this precision, as a tensor if codes were."""
    return inputs.write(torch.as_tensor(points).to(getattr(torch, precision)), like)


def check_search(method: str | None, kernel: Any, asked: Any) -> None:
    """Raise an error if this kernel does not support the search that `preimage` names; `asked` is the parameter."""
    if method not in SEARCHES:
        return
    if kernel is None or not kernel.is_of_torch:
        needs = f"needs dense samples and a kernel of ours, got {getattr(kernel, 'metric', asked)!r}"
        raise NotImplementedError(f'preimage: {method!r} {needs}; use "ridge"')
    if method == "fixed-point" and not kernel.is_isotropic and not kernel.preimages_without_samples:
        needs = f"needs a kernel of distances (RBF, Laplacian, Matern), got {type(kernel).__name__}"
        raise TypeError(f'preimage: "fixed-point" {needs}; use "gradient" or "ridge"')


def preimages(codes: Tensor, method: str, projection: KernelProjection, values: Any, vectors: Any) -> Tensor:
    """Return the points whose images are nearest to the projections with these codes.

    `values` and `vectors` are the eigenpairs whose `projection` gives codes to points.
    """
    kernel, X = projection.kernel, projection.points
    values, H = (torch.as_tensor(part).to(codes) for part in (values, vectors))
    positive = values > 0
    if not positive.any():
        raise ValueError("X: no component of the model has a positive eigenvalue, so that codes say nothing")
    values, H = values[positive], H[:, positive]
    if kernel.preimages_without_samples:
        sums = projection.weights[:, positive] * values.sqrt()
        mean = kernel.mean_features(X)
        basis = on_landmarks(kernel, torch.cat([sums, mean[:, None]], dim=1), center=True)
    else:
        basis = Components(kernel, X, H, center=True)
    coordinates = basis.coordinates_from_scores(codes[:, positive] * values.sqrt())
    from drkm.inference.preimage import preimage

    return preimage(basis, coordinates, method=method).points
