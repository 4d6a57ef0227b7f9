"""Conversion of version 2 checkpoints to the current format.

A state was a flat dict; the header had its plain values and the lengths of its lists of tensors. Layer numbers were
part of the names of its parts, and so were the records that are now inside a state.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from torch import Tensor

from drkm.solvers.state import Dimensions
from drkm.training.checkpoint.packing import TENSOR
from drkm.validation import parts

VERSION = 2
#: more tensors than any list in a state had
LONGEST_LIST = 100_000
#: fields that hold records now, with the former names of their parts
RECORDS = {
    "preconditioner": {name: name for name in ("basis", "scale", "axes", "curvatures", "within")},
    "bandwidths": {"log_sigma2": "log_sigma2", "start": "log_sigma2_start", "m": "m_log", "v": "v_log"},
}


def upgraded(header: dict[str, Any], tensors: dict[str, Tensor], kind: type, dimensions: Dimensions) -> dict[str, Any]:
    """Convert a header to the current version, for a solver with states of this class."""
    old = {"scalars": parts.group({}, others=True), "lists": parts.named(parts.count(most=LONGEST_LIST))}
    parts.check(header, {"runs": parts.numbered(parts.group(old, others=True))}, others=True)
    runs = {}
    for number, run in header["runs"].items():
        kept = {name: value for name, value in run.items() if name not in old}
        runs[number] = {**kept, "state": _state(run, tensors, f"run{number}.", kind, len(dimensions.sizes))}
    return {**header, "runs": runs}


def _state(run: dict[str, Any], tensors: dict[str, Tensor], prefix: str, kind: type, layers: int) -> dict[str, Any]:
    """Return a state in the format of `pack`, from the parts of a run in the header and in the tensors."""
    own = {name.removeprefix(prefix): {TENSOR: name} for name in tensors if name.startswith(prefix)}
    lists = {
        name: [own.pop(f"{name}.{number}", None) for number in range(length)] for name, length in run["lists"].items()
    }
    flat = {"status": None, "feasibility": 0.0, **run["scalars"], **own, **lists}
    names = {field.name for field in fields(kind)}
    if "curvature" in names:
        above = [f"curvature{layer}" for layer in range(layers - 1)]
        # A missing part stays missing: None would be a value.
        flat["curvature"] = [flat.pop(name, {TENSOR: name}) for name in above]
    for name, olds in RECORDS.items():
        if name in names:
            found = {new: flat.pop(old) for new, old in olds.items() if old in flat}
            flat[name] = {**dict.fromkeys(olds), **found} if found else None
    return flat
