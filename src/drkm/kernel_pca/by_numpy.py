"""The fit of `KernelPCA` with numpy and scipy alone: importing torch can take longer than the fit."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from drkm.arrays import components, forms
from drkm.arrays.components import Components
from drkm.arrays.eigen_options import EigenOptions
from drkm.arrays.eigenpairs import numbers_held, numbers_of_features
from drkm.arrays.forms import WORST_ROUNDING
from drkm.kernel_pca import ridge
from drkm.kernel_pca.parameters import component_count, keeps_zeros, kernel_choice, learns_inverse
from drkm.kernel_pca.results import Results
from drkm.machine import memory, pages
from drkm.machine.devices import LEAST_ON_GPU, may_have_gpu
from drkm.serving import Projection

#: copies of the samples and n×k blocks that a fit holds besides, at most; share of the available memory for all of it
COPIES, BLOCKS, SHARE = 6, 8, 0.5


def fitted(rows: Any, X: Any, chosen: Mapping[str, Any], options: EigenOptions) -> Results | None:
    """Return the results of a fit to the samples that were read from X, or None if torch is needed.

    The same fit by torch has the same bits: both call `drkm.arrays`. What is unusual is left to it, with its errors.
    """
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.float64 and _is_plain(chosen, len(rows))):
        return None
    choice, samples = kernel_choice(chosen), np.ascontiguousarray(rows)
    named = choice.named(choice.gamma_of(rows.shape[1])) if isinstance(choice.kernel, str) else None
    # Fixed points need a kernel of distances.
    if named is None or (chosen["preimage"] == "fixed-point" and named[0] != "RBF"):
        return None
    (n, d), count = samples.shape, component_count(chosen)
    needed = most_bytes(n, d, named[0], count, options)
    if not (_has_digits(samples, *named) and memory.fits(needed, "cpu", SHARE)):
        # Tiles may be needed.
        return None
    if learns_inverse(chosen):
        ridge.check_room(n, samples.itemsize)
    found = _components(samples, *named, count, options, keeps_zeros(chosen))
    # Copied last, into memory that the kernel matrix has left.
    is_own = isinstance(X, np.ndarray) and not np.may_share_memory(samples, X)
    kept = samples if is_own or not chosen["copy_X"] else pages.aligned_copy(samples)
    plain = Projection(*named, None if named[0] in forms.FEATURES else kept, found.weights, found.shift)
    values, vectors = (np.ascontiguousarray(part) for part in (found.values, found.vectors))
    return Results(kept, values, vectors, plain, "float64")


def _is_plain(chosen: Mapping[str, Any], n: int) -> bool:
    """Whether parameters ask for nothing that torch computes, and nobody reads the log of operators."""
    plain = {"gram": ("auto", "dense"), "dtype": ("auto", "float64"), "device": ("auto", "cpu")}
    if not all(isinstance(chosen[name], str) and chosen[name] in allowed for name, allowed in plain.items()):
        return False
    on_cpu = chosen["device"] == "cpu" or n < LEAST_ON_GPU or not may_have_gpu()
    return on_cpu and not logging.getLogger("drkm.gram").isEnabledFor(logging.INFO)


def _has_digits(X: np.ndarray, name: str, parameters: Mapping[str, Any]) -> bool:
    """Whether sums of kernel values are in the range of float64, and rounding hides no distances, at first sight."""
    form = forms.named(name, parameters)
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", X, X)
        largest = float(squares.max())
        if isinstance(form, forms.Gaussian) and not np.finfo(X.dtype).eps * largest <= WORST_ROUNDING * form.sigma2:
            return False
        if isinstance(form, forms.Power):
            largest = max(largest, float(form.diagonal(X[squares.argmax()][None])[0]))
    return len(X) * largest <= np.finfo(X.dtype).max


def most_bytes(n: int, d: int, name: str, count: int | None, options: EigenOptions) -> int:
    """Return how much memory a fit takes at most, besides its samples; there is an exact account for torch."""
    by_matrix = name not in forms.FEATURES or d >= n
    k = min(n, count or (n if by_matrix else d))
    solving = n * n + numbers_held(n, k, options) if by_matrix else numbers_of_features(n, d, k, options)
    return 8 * (solving + COPIES * n * d + BLOCKS * n * k)


def _components(
    X: np.ndarray, name: str, parameters: Mapping[str, Any], count: int | None, options: EigenOptions, keep_zeros: bool
) -> Components:
    n, d = X.shape
    form = forms.named(name, parameters, n**2)
    if form is not None:
        return components.of_points(form, X, min(n, count or n), options, keep_zeros=keep_zeros)
    wanted, beyond_rank = min(n, count or d), count is not None
    features = partial(forms.FEATURES[name], X)
    return components.of_features(features, wanted, options, keep_zeros=keep_zeros, beyond_rank=beyond_rank)
