"""From codes back to points by a search for pre-images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.inference import arguments
from drkm.inference.kernel_projection import KernelProjection
from drkm.inference.subspace import Components, on_landmarks
from drkm.kernel_pca.parameters import SEARCHES
from drkm.validation import checks


def read_codes(X: Any, names: np.ndarray, like: Tensor) -> Tensor:
    """Return codes with these names, one for each column of `like`, in its precision."""
    return arguments.codes(X.toarray() if checks.is_sparse(X) else X, names, like, "X")


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
