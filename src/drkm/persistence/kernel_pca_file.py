"""The file of a `KernelPCA`: its content besides what all model files have.

Tensors, for n samples of d features and k components:

    X                           samples, n×d (n×n for a precomputed kernel); data, indices and rows of sparse ones
    values, vectors             eigenpairs, k and n×k
    weights, shift              A, n×k (D×k with D explicit features), and b of the codes k(x, X)A - b; float64 if the
                                distances of float32 samples need more digits
    dual_coef                   the ridge regression of `inverse_transform`, n×d, if it was learned
    kernel0.*, map0.*           as in the files of other models

The header has the parameters, and the kernel with all parameters as numbers if it is one of ours. A file never holds
code: a function as kernel is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.kernels import Kernel, entries
from drkm.kernels.feature_map import FeatureMap
from drkm.persistence import model_parts, strategies
from drkm.problem import stiefel
from drkm.training import parameters
from drkm.training.kernel_components import KernelComponents
from drkm.validation import checks, parts
from drkm.validation.parts import Part
from drkm.wording import dtype_name

ESTIMATOR = "KernelPCA"
#: parameters that a file holds unchanged
PLAIN = (
    "n_components",
    "gamma",
    "degree",
    "coef0",
    "alpha",
    "fit_inverse_transform",
    "eigen_solver",
    "tol",
    "max_iter",
    "iterated_power",
    "remove_zero_eig",
    "copy_X",
    "n_jobs",
    "preimage",
)
HEADER: dict[str, Part] = {
    "estimator": parts.choice(ESTIMATOR),
    "parameters": parts.group(
        {
            **dict.fromkeys((*PLAIN, "kernel", "gram", "dtype"), parts.present),
            "n_jobs": parts.nullable(parts.count(-1024, 1024)),
            "random_state": parts.nullable(parts.count()),
        }
    ),
    "kernel": parts.nullable(parts.group({"type": parts.text}, others=True)),
    "n_features": parts.count(1),
    "feature_names": parts.several(parts.text),
    "kind_of_array": parts.choice("numpy", "torch"),
}
SPARSE = ("X.data", "X.indices", "X.rows")
#: factor by which weights may be longer than those of exact eigenpairs
LONGEST = 10.0


@dataclass(frozen=True)
class SavedComponents:
    """The content of a `KernelPCA` file.

    Attributes
    ----------
    samples : Tensor, array or sparse matrix of shape (n, d)
        A tensor if the kernel is one of ours.
    found : KernelComponents
    dual_coef : array of shape (n, d), optional
    parameters : dict
        Parameters of the estimator, as far as a file can hold them.
    feature_names : sequence of str
    kind_of_array : {"numpy", "torch"}
        Type of the array that was passed to `fit`.
    """

    samples: Any
    found: KernelComponents
    dual_coef: np.ndarray | None
    parameters: Mapping[str, Any]
    feature_names: Sequence[str]
    kind_of_array: str


def parts_of(saved: SavedComponents) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the header of a file; a function as kernel is refused."""
    chosen, found = saved.parameters, saved.found
    # Weights of explicit features refer to their basis.
    kernel = None if found.kernel is None else found.kernel.in_same_basis
    if callable(chosen["kernel"]) and not hasattr(chosen["kernel"], "entry"):
        raise ValueError(
            f"kernel: a file holds no code, and {chosen['kernel']!r} is a function: fit a drkm.kernels object, or "
            'kernel="precomputed" with its values'
        )
    described = {name: chosen[name] for name in PLAIN}
    described["kernel"] = entries.asked_entry(chosen["kernel"])
    described["gram"] = strategies.described(chosen["gram"])
    described["dtype"] = chosen["dtype"] if isinstance(chosen["dtype"], str) else dtype_name(found.weights.dtype)
    seed = chosen["random_state"]
    described["random_state"] = None if seed is None or isinstance(seed, np.random.RandomState) else int(seed)
    header: dict[str, Any] = {
        "estimator": ESTIMATOR,
        "parameters": described,
        "kernel": None if kernel is None else entries.entry_of(kernel),
        "n_features": saved.samples.shape[1],
        "feature_names": list(saved.feature_names),
        "kind_of_array": saved.kind_of_array,
    }
    tensors = {"values": torch.from_numpy(found.values), "vectors": torch.from_numpy(found.vectors)}
    tensors |= {"weights": found.weights, "shift": found.shift} | _sample_tensors(saved.samples)
    if saved.dual_coef is not None:
        tensors["dual_coef"] = torch.from_numpy(saved.dual_coef)
    return tensors | ({} if kernel is None else entries.arrays_of([kernel])), header


def _sample_tensors(samples: Any) -> dict[str, Tensor]:
    if not checks.is_sparse(samples):
        return {"X": samples if isinstance(samples, Tensor) else torch.from_numpy(np.ascontiguousarray(samples))}
    rows = samples.tocsr()
    found = (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64))
    return {name: torch.from_numpy(part) for name, part in zip(SPARSE, found, strict=True)}


def rebuilt(tensors: dict[str, Tensor], header: dict[str, Any], feature_maps: Mapping[int, Any]) -> SavedComponents:
    """Rebuild the content of a file, or raise an error that names the wrong part."""
    parts.check(header, {"kind": parts.text, "version": parts.count(1), **HEADER})
    names, entry = header["feature_names"], header["kernel"]
    if names and len(names) != header["n_features"]:
        raise ValueError(f"feature_names: expected {header['n_features']}, got {len(names)}")
    vectors = tensors.get("vectors")
    if vectors is None or vectors.ndim != 2 or vectors.dtype not in parameters.DTYPES.values():
        expected = f"a matrix in {' or '.join(parameters.DTYPES)}"
        raise ValueError(f"vectors: expected {expected}, got {model_parts.got(vectors)}")
    computed = _computed_in(tensors, vectors)
    arrays = {} if entry is None else model_parts.kernel_shapes(tensors, entry, 0, header["n_features"])
    parts.check(tensors, {name: parts.tensor(*shape, dtype=computed) for name, shape in arrays.items()}, others=True)
    like = vectors.to(computed)
    kernel = None if entry is None else entries.trained_kernel(entry, 0, tensors, feature_maps, like)
    samples = _samples(tensors, vectors, header["n_features"], own=kernel is not None)
    _check_components(tensors, kernel, samples)
    chosen = dict(header["parameters"])
    chosen["gram"] = strategies.read(chosen["gram"])
    chosen["kernel"] = entries.asked_kernel(chosen["kernel"], [] if kernel is None else [kernel])
    values, coefficients = tensors["values"].numpy(force=True), tensors.get("dual_coef")
    # Scikit-learn computes its kernels on a CPU, whatever the device of the others.
    numbers = (tensors[name] if kernel is not None else tensors[name].cpu() for name in ("weights", "shift"))
    found = KernelComponents(kernel, values, vectors.numpy(force=True), *numbers)
    dual_coef = None if coefficients is None else coefficients.numpy(force=True)
    return SavedComponents(samples, found, dual_coef, chosen, names, header["kind_of_array"])


def _computed_in(tensors: dict[str, Tensor], vectors: Tensor) -> torch.dtype:
    """Return the precision of weights: that of the samples, or float64 where their distances need more digits."""
    return torch.float64 if getattr(tensors.get("weights"), "dtype", None) == torch.float64 else vectors.dtype


def _samples(tensors: dict[str, Tensor], vectors: Tensor, features: int, *, own: bool) -> Any:
    """Return the samples; those of scikit-learn's kernels are arrays."""
    n, dtype = len(vectors), vectors.dtype
    if "X.data" not in tensors:
        parts.check(tensors, {"X": parts.tensor(n, features, dtype=dtype)}, others=True)
        return tensors["X"] if own else tensors["X"].numpy(force=True)
    from scipy.sparse import csr_matrix

    count = tensors["X.data"].numel()
    shapes = {"X.data": (count,), "X.indices": (count,), "X.rows": (n + 1,)}
    kinds = {name: parts.tensor(*shape, dtype=torch.int64) for name, shape in shapes.items()}
    parts.check(tensors, {**kinds, "X.data": parts.tensor(count, dtype=dtype)}, others=True)
    data, indices, rows = (tensors[name].numpy(force=True) for name in SPARSE)
    if own:
        raise ValueError("X.data: expected dense samples X, a kernel of drkm takes no sparse ones")
    if outside := [index for index in (indices.min(initial=0), indices.max(initial=0)) if not 0 <= index < features]:
        raise ValueError(f"X.indices: expected columns from 0 to {features - 1}, got {outside[0]}")
    if rows[0] != 0 or rows[-1] != count:
        raise ValueError(f"X.rows: expected numbers from 0 to {count}, got {rows[0]} to {rows[-1]}")
    if (np.diff(rows) < 0).any():
        raise ValueError(f"X.rows: expected numbers that never fall, got a fall of {-np.diff(rows).min()}")
    return csr_matrix((data, indices, rows), shape=(n, features))


def _check_components(tensors: dict[str, Tensor], kernel: Kernel | None, samples: Any) -> None:
    """Check that eigenpairs, weights and regression are there and consistent."""
    vectors = tensors["vectors"]
    n, count = vectors.shape
    computed = _computed_in(tensors, vectors)
    width = n if kernel is None else _rows_of_weights(kernel, samples, computed)
    shapes: dict[str, tuple[int, ...]] = {"values": (count,), "vectors": (n, count)}
    shapes |= {"weights": (width, count), "shift": (count,)}
    if "dual_coef" in tensors:
        shapes["dual_coef"] = tuple(samples.shape)
    kinds = {name: computed if name in ("weights", "shift") else vectors.dtype for name in shapes}
    parts.check(tensors, {name: parts.tensor(*shape, dtype=kinds[name]) for name, shape in shapes.items()}, others=True)
    allowed = {*shapes, *(SPARSE if checks.is_sparse(samples) else ("X",))}
    prefixes = (f"{Kernel.prefix}0.", f"{FeatureMap.prefix}0.")
    if strange := [name for name in tensors if name not in allowed and not name.startswith(prefixes)]:
        raise ValueError(f"{min(strange)[:60]!r}: expected no such part")
    values, weights = tensors["values"], tensors["weights"]
    if (values < 0).any() or (values.diff() > 0).any():
        found = f"{values.min():.3g}" if (values < 0).any() else "another order"
        raise ValueError(f"values: expected eigenvalues of at least 0 in descending order, got {found}")
    if not (defect := stiefel.feasibility(vectors)) <= model_parts.DEFECT:
        raise ValueError(f"vectors: expected orthonormal columns, got ‖VᵀV - I‖ = {defect:.2g}")
    # A = V/√λ has columns of length 1/√λ, and ΦᵀV/√λ of length 1.
    lengths = torch.linalg.vector_norm(weights.double(), dim=0)
    if not (lengths * (1 if kernel is not None and kernel.is_explicit else values.double().sqrt()) <= LONGEST).all():
        raise ValueError("weights: expected those that follow from the eigenpairs")


def _rows_of_weights(kernel: Kernel, samples: Tensor, dtype: torch.dtype) -> int:
    """Return the number of weights per component, from the kernel's result for one sample."""
    one = samples[:1].to(dtype)
    if not torch.isfinite(kernel(one, one)).all() or not torch.isfinite(kernel.diagonal(one)).all():
        raise ValueError("kernel: expected one that has a finite value at the first sample")
    return kernel.features(one).shape[1] if kernel.is_explicit else len(samples)
