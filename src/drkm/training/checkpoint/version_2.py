"""Checkpoints of version 2, read as if they had been written today.

A state was a flat dict, of which the header had the plain values and the lengths of the lists of tensors. Layers were
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
#: more tensors than any list of a state had
LONGEST_LIST = 100_000
#: fields that hold records today, with the names that the parts of these had
RECORDS = {
    "preconditioner": {name: name for name in ("basis", "scale", "axes", "curvatures", "within")},
    "bandwidths": {"log_sigma2": "log_sigma2", "start": "log_sigma2_start", "m": "m_log", "v": "v_log"},
}


def upgraded(header: dict[str, Any], tensors: dict[str, Tensor], kind: type, dimensions: Dimensions) -> dict[str, Any]:
    """Return the header as today's version has it, for a solver with states of this kind."""
    old = {"scalars": parts.group({}, others=True), "lists": parts.named(parts.count(most=LONGEST_LIST))}
    parts.check(header, {"runs": parts.numbered(parts.group(old, others=True))}, others=True)
    runs = {}
    for number, run in header["runs"].items():
        kept = {name: value for name, value in run.items() if name not in old}
        runs[number] = {**kept, "state": _state(run, tensors, f"run{number}.", kind, len(dimensions.sizes))}
    return {**header, "runs": runs}


def _state(run: dict[str, Any], tensors: dict[str, Tensor], prefix: str, kind: type, layers: int) -> dict[str, Any]:
    """Return a state as `pack` gives it, from the parts that a run has in the header and in the tensors."""
    own = {name.removeprefix(prefix): {TENSOR: name} for name in tensors if name.startswith(prefix)}
    lists = {
        name: [own.pop(f"{name}.{number}", None) for number in range(length)] for name, length in run["lists"].items()
    }
    flat = {"status": None, "feasibility": 0.0, **run["scalars"], **own, **lists}
    names = {field.name for field in fields(kind)}
    if "curvature" in names:
        above = [f"curvature{layer}" for layer in range(layers - 1)]
        # One that is missing stays so: None would be a value.
        flat["curvature"] = [flat.pop(name, {TENSOR: name}) for name in above]
    for name, olds in RECORDS.items():
        if name in names:
            found = {new: flat.pop(old) for new, old in olds.items() if old in flat}
            flat[name] = {**dict.fromkeys(olds), **found} if found else None
    return flat
