"""Fingerprints that identify a fit: a hash of its samples and of all parameters that its result depends on."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.gram import Sharded


def fingerprint(X: Tensor | Rows, parameters: dict[str, Any]) -> str:
    """Return a hash of the samples and of every parameter that the result depends on."""
    digest = hashlib.sha256(settings(parameters).encode())
    digest.update(str(tuple(X.shape)).encode())
    for part in (X[rows] for rows in X.tiles()) if isinstance(X, Rows) else [X]:
        digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def settings(parameters: dict[str, Any]) -> str:
    """Return the parameters as text that is the same in every process."""
    return json.dumps(_canonical(parameters), sort_keys=True)


def _canonical(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Return the value of a parameter, in full and without addresses: `repr` would shorten arrays and hide functions.

    `inside` are the functions that contain it, which it may refer to.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _canonical(entry, inside) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(entry, inside) for entry in value]
    if isinstance(value, set | frozenset):
        # The order of sets differs between processes.
        return sorted(json.dumps(_canonical(entry, inside)) for entry in value)
    if isinstance(value, Sharded):
        # The result does not depend on which processes share the samples.
        return _canonical(value.inner)
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(value, np.random.RandomState):
        return _canonical(value.get_state())
    if isinstance(value, torch.nn.Module):
        return [repr(value), _canonical(value.state_dict())]
    if id(value) in inside:
        return inside.index(id(value))
    inside = (*inside, id(value))
    if isinstance(value, MethodType):
        return _canonical([value.__func__, value.__self__], inside)
    if isinstance(value, partial):
        return _canonical([value.func, value.args, value.keywords], inside)
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [value.__code__, value.__defaults__, value.__kwdefaults__, held]
        return [value.__module__, value.__qualname__, _canonical(parts, inside)]
    if isinstance(value, CodeType):
        # A function by what it does: its bytecode, the names it uses, and its constants, including functions.
        return [value.co_code.hex(), _canonical([value.co_names, value.co_consts], inside)]
    if isinstance(value, BuiltinFunctionType | type):
        return [value.__module__, value.__qualname__]
    if isinstance(value, ModuleType):
        return value.__name__
    if hasattr(value, "__dict__"):
        return [type(value).__module__, type(value).__qualname__, _canonical(vars(value), inside)]
    return str(value)
