"""States in a file: the header holds the JSON values, and the name of each tensor in its place."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from drkm.solvers.result import HISTORY_COLUMNS, history_entries
from drkm.validation import parts
from drkm.validation.parts import MISSING

#: the key under which a header names a tensor
TENSOR = "tensor"
#: tensors are fields of a state, entries of its lists or fields of its records
DEPTH = 2


def pack(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Convert a value to JSON; its tensors are added to `tensors` under names that begin with `name`."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {TENSOR: name}
    if is_dataclass(value):
        return {own.name: pack(getattr(value, own.name), f"{name}.{own.name}", tensors) for own in fields(value)}
    if isinstance(value, list | tuple):
        return [pack(entry, f"{name}.{number}", tensors) for number, entry in enumerate(value)]
    return value


def unpack(value: Any, tensors: dict[str, Tensor], depth: int = DEPTH) -> Any:
    """Undo `pack`, with dicts instead of dataclasses; each tensor is removed from `tensors` once."""
    if isinstance(value, dict) and value.keys() == {TENSOR} and isinstance(value[TENSOR], str):
        return tensors.pop(value[TENSOR], MISSING)
    if isinstance(value, dict) and depth:
        return {name: unpack(entry, tensors, depth - 1) for name, entry in value.items()}
    if isinstance(value, list) and depth:
        return [unpack(entry, tensors, depth - 1) for entry in value]
    return value


def with_history(values: Any) -> Any:
    """Return the fields of a state or a result with the entries of its history in place of their matrix.

    Before version 4 the header had the entries.
    """
    if not isinstance(values, dict) or not isinstance(matrix := values.get("history"), Tensor):
        return values
    parts.tensor(*matrix.shape[:1], len(HISTORY_COLUMNS), dtype=torch.float64)("history", matrix)
    return {**values, "history": history_entries(matrix)}
