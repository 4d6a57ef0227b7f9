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

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from drkm.files import container
from drkm.files.tensor_file import Stored
from drkm.persistence.model_format import KIND, VERSION
from drkm.serving.formulas import FORMULAS
from drkm.serving.projection import PRECISIONS, Projection
from drkm.validation import checks, parts
from drkm.validation.parts import Part
from drkm.wording import dtype_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from drkm.kernels import Kernel

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
#: beginnings of the names of a kernel's arrays
OF_KERNEL = ("kernel0.", "map0.")
#: factor by which weights may be longer than those of exact eigenpairs
LONGEST = 10.0
#: tolerance for ‖VᵀV - I‖
DEFECT = 1e-3


@dataclass(frozen=True)
class SavedComponents:
    """The content of a `KernelPCA` file.

    Attributes
    ----------
    samples : array, Tensor or sparse matrix of shape (n, d)
    values, vectors : arrays of shape (k,) and (n, k)
        Eigenpairs.
    weights, shift : arrays or Tensors of shape (n, k) or (D, k), and (k,)
        A and b of the codes k(x, X)A - b, or φ(x)A - b with explicit features.
    dual_coef : array of shape (n, d), optional
    entry : mapping, optional
        The kernel, if it is one of ours.
    arrays : mapping
        Arrays that the kernel has besides.
    parameters : dict
        Parameters of the estimator, as far as a file can hold them.
    feature_names : sequence of str
    kind_of_array : {"numpy", "torch"}
        Type of the array that was passed to `fit`.
    feature_maps : mapping
        What the caller gives to `load`, because a file does not hold it.
    device : str or torch.device
        Where our kernels are to be computed.
    """

    samples: Any
    values: np.ndarray
    vectors: np.ndarray
    weights: Any
    shift: Any
    dual_coef: np.ndarray | None
    entry: Mapping[str, Any] | None
    arrays: Mapping[str, Stored | Tensor]
    parameters: Mapping[str, Any]
    feature_names: Sequence[str]
    kind_of_array: str
    feature_maps: Mapping[int, Any] = field(default_factory=dict)
    device: str | torch.device = "cpu"

    @cached_property
    def kernel(self) -> Kernel | None:
        """The kernel, for which torch is imported; None if scikit-learn computes it."""
        if self.entry is None:
            return None
        import torch

        from drkm.kernels import entries
        from drkm.persistence import model_parts

        stored = {name: part for name, part in self.arrays.items() if isinstance(part, Stored)}
        tensors = container.as_tensors(stored, self.device)
        like = torch.empty(0, dtype=getattr(torch, str(self.weights.dtype)), device=self.device)
        shapes = model_parts.kernel_shapes(tensors, dict(self.entry), 0, self.samples.shape[1])
        required = {name: parts.tensor(*shape, dtype=like.dtype) for name, shape in shapes.items()}
        parts.check(tensors, required, others=True)
        return entries.trained_kernel(dict(self.entry), 0, tensors, self.feature_maps, like)

    @property
    def is_served(self) -> bool:
        """Whether numpy computes the kernel."""
        return self.entry is not None and self.entry["type"] in FORMULAS and "kernel" not in self.entry

    def served(self, precision: str) -> Projection | None:
        """Return the codes of points by numpy alone, if it computes the kernel and the model is on the CPU."""
        if not self.is_served or not str(self.device).startswith("cpu"):
            return None
        entry: Any = self.entry
        points = self.samples.astype(self.weights.dtype, copy=False) if FORMULAS[entry["type"]].columns else None
        return Projection(entry["type"], entry["parameters"], points, self.weights, self.shift, precision)


def write(path: str | os.PathLike[str], saved: SavedComponents) -> None:
    """Write a fitted `KernelPCA`; a function as kernel is refused."""
    tensors, header = _parts_of(saved)
    container.write(path, tensors, {"kind": KIND, "version": VERSION, **header})


def _parts_of(saved: SavedComponents) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and the header of a file."""
    chosen = saved.parameters
    if callable(chosen["kernel"]) and not hasattr(chosen["kernel"], "entry"):
        raise ValueError(
            f"kernel: a file holds no code, and {chosen['kernel']!r} is a function: fit a drkm.kernels object, or "
            'kernel="precomputed" with its values'
        )
    described = {name: chosen[name] for name in PLAIN}
    described["kernel"], described["gram"] = (_entry_of(name, chosen[name]) for name in ("kernel", "gram"))
    described["dtype"] = chosen["dtype"] if isinstance(chosen["dtype"], str) else dtype_name(saved.weights.dtype)
    seed = chosen["random_state"]
    described["random_state"] = None if seed is None or isinstance(seed, np.random.RandomState) else int(seed)
    header: dict[str, Any] = {
        "estimator": ESTIMATOR,
        "parameters": described,
        "kernel": saved.entry,
        "n_features": saved.samples.shape[1],
        "feature_names": list(saved.feature_names),
        "kind_of_array": saved.kind_of_array,
    }
    numbers = {"values": saved.values, "vectors": saved.vectors, "weights": saved.weights, "shift": saved.shift}
    numbers |= _sample_arrays(saved.samples) | ({} if saved.dual_coef is None else {"dual_coef": saved.dual_coef})
    stored = {name: part if checks.is_tensor(part) else Stored.of(part) for name, part in numbers.items()}
    return stored | dict(saved.arrays), header


def _entry_of(name: str, value: Any) -> Any:
    """Return the parameter `kernel` or `gram` as JSON: names, for which torch is not needed, remain."""
    if isinstance(value, str):
        return value
    from drkm.kernels import entries
    from drkm.persistence import strategies

    return entries.asked_entry(value) if name == "kernel" else strategies.described(value)


def _sample_arrays(samples: Any) -> dict[str, Any]:
    if not checks.is_sparse(samples):
        return {"X": samples}
    rows = samples.tocsr()
    return dict(zip(SPARSE, (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)), strict=True))


def rebuilt(
    stored: Mapping[str, Stored],
    header: dict[str, Any],
    feature_maps: Mapping[int, Any],
    device: str | torch.device = "cpu",
) -> SavedComponents:
    """Rebuild the content of a file, or raise an error that names the wrong part."""
    parts.check(header, {"kind": parts.text, "version": parts.count(1), **HEADER})
    names, entry = header["feature_names"], header["kernel"]
    if names and len(names) != header["n_features"]:
        raise ValueError(f"feature_names: expected {header['n_features']}, got {len(names)}")
    arrays = {name: part for name, part in stored.items() if name.startswith(OF_KERNEL)}
    numbers = {name: part.array() for name, part in stored.items() if name not in arrays}
    vectors = numbers.get("vectors")
    if vectors is None or vectors.ndim != 2 or dtype_name(vectors.dtype) not in PRECISIONS:
        found = "none" if vectors is None else f"{dtype_name(vectors.dtype)} of shape {vectors.shape}"
        raise ValueError(f"vectors: expected a matrix in {' or '.join(PRECISIONS)}, got {found}")
    # More columns cannot be orthonormal, and checking whether they are would need the square of their number.
    if vectors.shape[1] > len(vectors):
        raise ValueError(f"vectors: expected at most {len(vectors)} columns, one per sample, got {vectors.shape[1]}")
    parts.check(numbers, dict.fromkeys(("values", "weights", "shift"), parts.present), others=True)
    samples = _samples(numbers, vectors, header["n_features"], own=entry is not None)
    chosen = dict(header["parameters"])
    saved = SavedComponents(
        samples=samples,
        values=numbers["values"],
        vectors=vectors,
        weights=numbers["weights"],
        shift=numbers["shift"],
        dual_coef=numbers.get("dual_coef"),
        entry=entry,
        arrays=arrays,
        parameters=chosen,
        feature_names=names,
        kind_of_array=header["kind_of_array"],
        feature_maps=feature_maps,
        device=device,
    )
    _check_components(saved, numbers)
    if isinstance(chosen["gram"], dict):
        from drkm.persistence import strategies

        chosen["gram"] = strategies.read(chosen["gram"])
    if not isinstance(chosen["kernel"], str):
        from drkm.kernels import entries

        chosen["kernel"] = entries.asked_kernel(chosen["kernel"], [] if saved.kernel is None else [saved.kernel])
    return saved


def _samples(numbers: dict[str, np.ndarray], vectors: np.ndarray, features: int, *, own: bool) -> Any:
    """Return the samples, which may be sparse if scikit-learn computes their kernel."""
    n, dtype = len(vectors), vectors.dtype
    if "X.data" not in numbers:
        parts.check(numbers, {"X": parts.tensor(n, features, dtype=dtype)}, others=True)
        return numbers["X"]
    from scipy.sparse import csr_matrix

    count = numbers["X.data"].size
    shapes = {"X.data": (count,), "X.indices": (count,), "X.rows": (n + 1,)}
    kinds = {name: parts.tensor(*shape, dtype=np.dtype(np.int64)) for name, shape in shapes.items()}
    parts.check(numbers, {**kinds, "X.data": parts.tensor(count, dtype=dtype)}, others=True)
    data, indices, rows = (numbers[name] for name in SPARSE)
    if own:
        raise ValueError("X.data: expected dense samples X, a kernel of drkm takes no sparse ones")
    if outside := [index for index in (indices.min(initial=0), indices.max(initial=0)) if not 0 <= index < features]:
        raise ValueError(f"X.indices: expected columns from 0 to {features - 1}, got {outside[0]}")
    if rows[0] != 0 or rows[-1] != count:
        raise ValueError(f"X.rows: expected numbers from 0 to {count}, got {rows[0]} to {rows[-1]}")
    if (np.diff(rows) < 0).any():
        raise ValueError(f"X.rows: expected numbers that never fall, got a fall of {-np.diff(rows).min()}")
    return csr_matrix((data, indices, rows), shape=(n, features))


def _check_components(saved: SavedComponents, numbers: Mapping[str, np.ndarray]) -> None:
    """Check that eigenpairs, weights and regression are there and consistent."""
    values, vectors, weights = saved.values, saved.vectors, saved.weights
    n, count = vectors.shape
    # In float64 where the distances of float32 samples need more digits.
    computed = weights.dtype if weights.dtype == np.float64 else vectors.dtype
    shapes: dict[str, tuple[int, ...]] = {"values": (count,), "vectors": (n, count)}
    width, is_explicit = _width(saved, computed)
    shapes |= {"weights": (width, count), "shift": (count,)}
    if saved.dual_coef is not None:
        shapes["dual_coef"] = tuple(saved.samples.shape)
    kinds = {name: computed if name in ("weights", "shift") else vectors.dtype for name in shapes}
    parts.check(numbers, {name: parts.tensor(*shape, dtype=kinds[name]) for name, shape in shapes.items()}, others=True)
    if strange := numbers.keys() - {*shapes, *(SPARSE if checks.is_sparse(saved.samples) else ("X",))}:
        raise ValueError(f"{min(strange)[:60]!r}: expected no such part")
    if (values < 0).any() or (np.diff(values) > 0).any():
        found = f"{values.min():.3g}" if (values < 0).any() else "another order"
        raise ValueError(f"values: expected eigenvalues of at least 0 in descending order, got {found}")
    if not (defect := np.linalg.norm(vectors.T @ vectors - np.eye(count))) <= DEFECT:
        raise ValueError(f"vectors: expected orthonormal columns, got ‖VᵀV - I‖ = {defect:.2g}")
    # A = V/√λ has columns of length 1/√λ, and ΦᵀV/√λ of length 1.
    lengths = np.linalg.norm(weights.astype(np.float64, copy=False), axis=0)
    if not (lengths * (1 if is_explicit else np.sqrt(values, dtype=np.float64)) <= LONGEST).all():
        raise ValueError("weights: expected those that follow from the eigenpairs")


def _width(saved: SavedComponents, dtype: np.dtype) -> tuple[int, bool]:
    """Return the number of weights per component, and whether they are those of features, by the first sample."""
    n, d = saved.samples.shape
    if saved.entry is None:
        return n, False
    one = saved.samples[:1].astype(dtype)
    if saved.is_served:
        formula, given = FORMULAS[saved.entry["type"]], saved.entry["parameters"]
        parts.check(given, formula.parameters)
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(formula.prepared(one, given)(one)).all()
        width, is_explicit = (n, False) if formula.columns else (d, True)
    else:
        kernel: Any = saved.kernel
        point = container.as_tensors({"one": Stored.of(one)}, saved.device)["one"]
        finite = kernel(point, point).isfinite().all() and kernel.diagonal(point).isfinite().all()
        is_explicit = kernel.is_explicit
        width = kernel.features(point).shape[1] if is_explicit else n
    if not finite:
        raise ValueError("kernel: expected one that has a finite value at the first sample")
    return width, is_explicit
