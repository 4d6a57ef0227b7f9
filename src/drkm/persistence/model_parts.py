"""Checks of model files: parts that are missing, of the wrong type or inconsistent are refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from drkm.inputs.preparation import GAPS, Preparation
from drkm.kernels.fourier import LENGTHS, MOST
from drkm.problem import axes, stiefel
from drkm.solvers.result import FACTS, HISTORY_COLUMNS
from drkm.training import parameters
from drkm.validation import parts
from drkm.validation.parts import Part
from drkm.wording import dtype_name

PREPARATION = "preparation."
#: landmarks of the first layer; samples may replace them if the header says that the factor is computed
LANDMARKS = "kernel0.landmarks"
ANY_GROUP = parts.optional(parts.group({}, others=True))
#: required keys of every header, except those that depend on the number of layers
HEADER: dict[str, Part] = {
    "parameters": parts.group({}, others=True),
    "kernels": parts.several(parts.group({"type": parts.text}, others=True), least=1),
    "sizes": parts.several(parts.count(1), least=1),
    "eta": parts.several(parts.positive),
    "lam": parts.several(parts.positive),
    "axes": parts.nullable(parts.choice(*(name for name in axes.NAMES if name))),
    "n_features": parts.count(1),
    "feature_names": parts.several(parts.text),
    "kind_of_array": parts.choice("numpy", "pandas", "torch"),
    "objectives": parts.several(parts.nullable(parts.number())),
    "result": parts.group(FACTS),
    "preparation": ANY_GROUP,
}
#: keys that the first versions lack
LATER: dict[str, Part] = {
    "errors": parts.several(parts.nullable(parts.number(0))),
    "at_bound": parts.several(parts.count(1)),
    "traces": parts.several(parts.number(0)),
    "operator": parts.text,
    "seconds": parts.number(0),
    "code_error": parts.number(0),
    "cost": parts.group(dict.fromkeys(("bytes", "flops", "traffic", "setup"), parts.number(0))),
}
#: tolerance for ‖HᵀH - I‖ against the stored value
DEFECT = 1e-3


def check(tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Check that the parts of a file are valid and consistent."""
    # No version wrote one of these without the others.
    if ("code_error" in header) != ("residual" in tensors):
        missing = "residual" if "code_error" in header else "code_error"
        raise ValueError(f"{missing}: expected one, a residual and a code_error belong together, got none")
    is_later = "traces" in header or "code_error" in header
    later = LATER if is_later else {name: parts.optional(part) for name, part in LATER.items()}
    parts.check(header, HEADER | later, others=True)
    layers, names = len(header["sizes"]), header["feature_names"]
    for name in ("kernels", "eta", "lam", "errors", "traces"):
        if len(header.get(name, range(layers))) != layers:
            raise ValueError(f"{name}: expected one per layer, {layers} in all, got {len(header[name])}")
    if names and len(names) != header["n_features"]:
        raise ValueError(f"feature_names: expected {header['n_features']}, got {len(names)}")
    parts.check(tensors, _tensor_parts(tensors, header), others=True)
    preparation(tensors, header)
    rotations = [tensors[f"rotation{layer}"] for layer in range(layers)]
    off = [stiefel.feasibility(tensors["H"]) - header["result"]["feasibility"], *map(stiefel.feasibility, rotations)]
    if not max(map(abs, off)) <= DEFECT * (1 + header["result"]["feasibility"]):
        raise ValueError("H: the codes or their axes are not as orthonormal as the file says")
    if "X" not in tensors:
        _check_projection(tensors["first.phi"], tensors["first.basis"], tensors["first.lengths"])


def _check_projection(phi: Tensor, basis: Tensor, lengths: Tensor) -> None:
    """Check that features in a basis are no longer than without it."""
    longest = lengths + DEFECT * lengths.mean()
    if not stiefel.feasibility(basis) <= DEFECT or not (phi.square().sum(dim=1) <= longest).all():
        raise ValueError("first.phi: the features of the samples are not those in an orthonormal basis")


def _tensor_parts(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Part]:
    """Return the requirements for the tensors of a file with a valid header."""
    H = tensors.get("H")
    if H is None or H.ndim != 2 or H.dtype not in parameters.DTYPES.values():
        raise ValueError(f"H: expected a matrix in {' or '.join(parameters.DTYPES)}, got {got(H)}")
    sizes, features, n = header["sizes"], header["n_features"], len(H)
    total = sum(sizes)
    shapes: dict[str, tuple[int, ...]] = {"H": (n, total)}
    for layer, (kernel, inputs) in enumerate(zip(header["kernels"], [features, *sizes], strict=False)):
        shapes |= kernel_shapes(tensors, kernel, layer, inputs)
    if "X" in tensors:
        shapes["X"] = (n, features)
    else:
        rows, width = _columns(tensors, "kernel0.factor"), _columns(tensors, "first.basis")
        # More columns cannot be orthonormal, and checking whether they are would need the square of their number.
        if width > rows:
            raise ValueError(f"first.basis: expected at most {rows} columns, one per feature, got {width}")
        shapes |= {"first.phi": (n, width), "first.lengths": (n,), "first.basis": (rows, width)}
        shapes["largest"] = (_rows(tensors, "largest"), features)
    if "row_means" in tensors:
        shapes["row_means"] = (n,)
    exact: dict[str, tuple[int, ...]] = {"multipliers": (total, total)}
    if "history" in tensors:
        exact["history"] = (len(header["result"]["history"]), len(HISTORY_COLUMNS))
    exact |= {f"rotation{layer}": (size, size) for layer, size in enumerate(sizes)}
    exact |= {f"eigenvalues{layer}": (size,) for layer, size in enumerate(sizes)}
    own = {name: parts.tensor(*shape, dtype=H.dtype) for name, shape in shapes.items()}
    if "code_error" in header:
        own["residual"] = parts.tensor(n, total, dtype=torch.float32)
    return own | {name: parts.tensor(*shape, dtype=torch.float64) for name, shape in exact.items()}


def kernel_shapes(
    tensors: dict[str, Tensor], kernel: dict[str, Any], layer: int, inputs: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer's kernel arrays (layers counted from 0), given its number of inputs."""
    if kernel["type"] == "NystroemFeatures":
        return _landmarks(tensors, kernel, layer, inputs)
    return _frequencies(tensors, kernel, layer, inputs) if kernel["type"] == "FourierFeatures" else {}


def _landmarks(
    tensors: dict[str, Tensor], kernel: dict[str, Any], layer: int, inputs: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer's landmarks and their factor, unless they are left out."""
    landmarks, factor = f"kernel{layer}.landmarks", f"kernel{layer}.factor"
    own = {"formed": parts.optional(parts.truth), "landmarks": parts.optional(parts.count(1))}
    parts.check(kernel, own, others=True)
    if not kernel.get("formed"):
        return {
            landmarks: (_rows(tensors, landmarks), inputs),
            factor: (_rows(tensors, landmarks), _columns(tensors, factor)),
        }
    if factor in tensors or "X" not in tensors:
        found = "a factor" if factor in tensors else "no samples"
        raise ValueError(f"{factor}: expected none, and the samples X, where landmarks form it, got {found}")
    if layer or landmarks in tensors:
        return {landmarks: (kernel.get("landmarks", _rows(tensors, landmarks)), inputs)}
    # Samples can only replace as many landmarks; version 4 had no others, and no number.
    if kernel.get("landmarks", len(tensors["X"])) != len(tensors["X"]):
        raise ValueError(f"{landmarks}: expected {kernel['landmarks']} of them, got {len(tensors['X'])} samples alone")
    return {}


def _frequencies(
    tensors: dict[str, Tensor], kernel: dict[str, Any], layer: int, inputs: int
) -> dict[str, tuple[int, ...]]:
    """Return the shape of a layer's frequencies, or of their lengths if they are drawn again."""
    name = f"kernel{layer}.frequencies"
    if "draw" not in kernel:
        return {name: (inputs, _columns(tensors, name))}
    draw = {
        "inputs": parts.count(inputs, inputs),
        "count": parts.count(1, MOST),
        "orthogonal": parts.truth,
        "random_state": parts.count(most=2**128),
        "degrees": parts.nullable(parts.positive),
    }
    parts.check(kernel, {"draw": parts.group(draw)}, others=True)
    if name in tensors:
        raise ValueError(f"kernel{layer}.lengths: expected them in place of the frequencies, got {got(tensors[name])}")
    lengths, count = f"kernel{layer}.lengths", kernel["draw"]["count"]
    # Earlier versions wrote the lengths of all frequencies.
    is_of_all = lengths in tensors and tensors[lengths].shape == (count,)
    return {lengths: (count if is_of_all else min(count, LENGTHS),)}


def got(tensor: Tensor | None) -> str:
    """Return the kind and shape of a tensor for an error message."""
    return "none" if tensor is None else f"{dtype_name(tensor.dtype)} of shape {tuple(tensor.shape)}"


def _rows(tensors: dict[str, Tensor], name: str) -> int:
    """Return the number of rows of a matrix, at least one."""
    if name not in tensors or tensors[name].ndim != 2 or 0 in tensors[name].shape:
        raise ValueError(f"{name}: expected a matrix, got {got(tensors.get(name))}")
    return tensors[name].shape[0]


def _columns(tensors: dict[str, Tensor], name: str) -> int:
    _rows(tensors, name)
    return tensors[name].shape[1]


def preparation(tensors: dict[str, Tensor], header: dict[str, Any]) -> Preparation:
    """Return how the data were prepared; nothing for a model made in Python."""
    parts.check(header, {"n_features": parts.count(1), "preparation": ANY_GROUP}, others=True)
    own = {name.removeprefix(PREPARATION): value for name, value in tensors.items() if name.startswith(PREPARATION)}
    if own and not header.get("preparation"):
        raise ValueError("preparation: expected what belongs to its offset and scale, got nothing")
    plain, features = header.get("preparation") or {}, header["n_features"]
    of_gaps = {name.removeprefix(GAPS): own.pop(name) for name in list(own) if name.startswith(GAPS)}
    gaps = None
    if of_gaps or "gaps" in plain:
        from drkm.imputation.filling import Filling

        gaps = Filling.from_parts(of_gaps, plain.get("gaps", {}), features)
    return Preparation.from_parts(own, plain, features, gaps)
