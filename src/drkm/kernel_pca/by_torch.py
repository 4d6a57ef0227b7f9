"""What `KernelPCA` computes with torch, which is imported with this module: results of a fit, codes of many points."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm import inputs
from drkm.inference.kernel_projection import KernelProjection
from drkm.kernel_pca import precision, samples
from drkm.kernel_pca.choice import KernelChoice
from drkm.kernel_pca.results import Results
from drkm.kernels import KINDS, entries
from drkm.persistence.kernel_pca_file import SavedComponents
from drkm.serving import Projection
from drkm.training.kernel_components import KernelComponents
from drkm.validation import checks
from drkm.validation.samples import as_array
from drkm.wording import dtype_name


def results(kept: Any, found: KernelComponents, X: Any, choice: KernelChoice) -> Results:
    """Return the results of a fit, as tensors if X is one."""
    like = X if isinstance(X, Tensor) else None
    is_tensor = isinstance(kept, Tensor)
    kernel = choice.scikit(choice.gamma_of(kept.shape[1])) if found.kernel is None else found.kernel
    # More than that of the samples where their distances need more digits.
    points = kept.to(found.weights.dtype) if is_tensor else kept
    dtype = kept.dtype if is_tensor else found.weights.dtype
    arrays = (np.ascontiguousarray(part) for part in (found.values, found.vectors))
    values, vectors = (inputs.write(torch.from_numpy(part).to(dtype), like) for part in arrays)
    projection = KernelProjection(kernel, points, found.weights, found.shift)
    return Results(inputs.write(kept, like) if is_tensor else kept, values, vectors, projection, dtype_name(dtype))


def rebuilt(saved: SavedComponents, choice: KernelChoice) -> Results:
    """Return the results that a file holds."""
    # Scikit-learn computes its kernels on a CPU, whatever the device of the others.
    device = "cpu" if saved.entry is None else saved.device
    like = torch.empty(0, device=device) if saved.kind_of_array == "torch" else None
    values, vectors = (inputs.write(torch.from_numpy(part), like) for part in (saved.values, saved.vectors))
    if saved.entry is not None:
        X = inputs.write(torch.from_numpy(saved.samples), like)
        weights, shift = (torch.from_numpy(part).to(saved.device) for part in (saved.weights, saved.shift))
        found = KernelProjection(saved.kernel, torch.from_numpy(saved.samples).to(weights), weights, shift)
        return Results(X, values, vectors, found, dtype_name(saved.vectors.dtype))
    weights, shift = (torch.from_numpy(part) for part in (saved.weights, saved.shift))
    kernel = choice.scikit(choice.gamma_of(saved.samples.shape[1]))
    codes_of_new = KernelProjection(kernel, saved.samples, weights, shift)
    return Results(saved.samples, values, vectors, codes_of_new, dtype_name(weights.dtype))


def projection(plain: Projection, given: np.ndarray) -> KernelProjection:
    """Return the codes of new points that numpy computes alone, as a function of tensors, given the samples."""
    weights, shift, points = (samples.as_tensor(part) for part in (plain.weights, plain.shift, given))
    kernel: Any = KINDS[plain.kernel](**plain.parameters)
    return KernelProjection(kernel, points.to(weights), weights, shift)


def codes(projection: KernelProjection, points: Any, dtype: str) -> Tensor:
    """Return the codes of the rows of an array, which may be sparse, or of a tensor."""
    if projection.kernel.is_of_torch:
        points = points.toarray() if checks.is_sparse(points) else points
        found = projection(samples.as_tensor(points).to(projection.weights))
        precision.check_finite(found)
    else:
        found = projection(points if checks.is_sparse(points) else as_array(points))
    return found.to(getattr(torch, dtype))


def described(kernel: Any) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """Return the entry of a kernel in the header of a file, and its arrays; nothing of scikit-learn's kernels."""
    if not kernel.is_of_torch:
        return None, {}
    # Weights of explicit features refer to their basis.
    own = kernel.in_same_basis
    return entries.entry_of(own), entries.arrays_of([own])
