"""Fingerprints that identify a fit: a hash of its samples and of all parameters that its result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
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

    `inside` are the objects that contain it, which it may refer to.
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
    if isinstance(value, Tensor | np.ndarray | np.generic):
        array = np.ascontiguousarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)
        return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
    if id(value) in inside:
        return inside.index(id(value))
    return _canonical(_content(value), (*inside, id(value)))


def _content(value: Any) -> Any:
    """Return simpler values that determine an object."""
    for kinds, content in CONTENTS:
        if isinstance(value, kinds):
            return content(value)
    return [type(value).__module__, type(value).__qualname__, vars(value)] if hasattr(value, "__dict__") else str(value)


def _content_of_function(function: FunctionType) -> Any:
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [function.__code__, function.__defaults__, function.__kwdefaults__, held]
    return [function.__module__, function.__qualname__, parts]


CONTENTS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    # The result does not depend on which processes share the samples.
    (Sharded, lambda strategy: strategy.inner),
    (np.random.RandomState, lambda state: state.get_state()),
    (torch.nn.Module, lambda module: [repr(module), module.state_dict()]),
    (MethodType, lambda method: [method.__func__, method.__self__]),
    (partial, lambda call: [call.func, call.args, call.keywords]),
    (FunctionType, _content_of_function),
    # A function by what it does: its bytecode, the names it uses, and its constants, including functions.
    (CodeType, lambda code: [code.co_code.hex(), [code.co_names, code.co_consts]]),
    ((BuiltinFunctionType, type), lambda named: [named.__module__, named.__qualname__]),
    (ModuleType, lambda module: module.__name__),
)
