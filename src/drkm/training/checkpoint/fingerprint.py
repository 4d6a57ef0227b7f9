"""Fingerprints that identify a fit: a hash of its samples and of all parameters that its result depends on."""

from __future__ import annotations

import dis
import hashlib
import json
import logging
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.gram import Sharded

#: folders of libraries, beside those of packages: Python's own, and this one
LIBRARIES = (Path(dis.__file__).parent, Path(__file__).parents[2])
PACKAGES = frozenset(("site-packages", "dist-packages"))
#: attributes that every module of torch has; its parameters and buffers are taken as tensors
OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
#: types of the options of a library's modules
OPTIONS = (bool, int, float, str, tuple, FunctionType, BuiltinFunctionType)


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
    if not hasattr(value, "__dict__"):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
    methods = _methods(type(value))
    return [type(value).__module__, type(value).__qualname__, vars(value), *([methods] if methods else [])]


def _content_of_function(function: FunctionType) -> Any:
    return [*_own_content(function), _globals(function)]


def _own_content(function: FunctionType) -> Any:
    # Variables that got no value yet have empty cells, which equal each other.
    held = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    parts = [function.__code__, function.__defaults__, function.__kwdefaults__, held]
    return [function.__module__, function.__qualname__, parts]


def _globals(function: FunctionType) -> dict[str, Any]:
    """Return the globals that a function names, by name, and those that such functions name, each once.

    Functions of libraries are determined by their code: their globals may be caches and the like.
    """
    found: dict[str, Any] = {}
    pending = [function]
    while pending:
        one = pending.pop()
        for name in () if _of_library(one) else _global_names(one.__code__):
            known, value = f"{one.__module__}.{name}", one.__globals__.get(name)
            if known in found or name not in one.__globals__:
                continue
            found[known] = value
            if isinstance(value, FunctionType):
                found[known] = _own_content(value)
                pending.append(value)
    return found


def _global_names(code: CodeType) -> set[str]:
    """Return the names that code, and functions inside it, look up in their module."""
    names = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _methods(kind: type) -> dict[str, FunctionType]:
    """Return the methods of a class, without those of libraries."""
    found = [(owner, name, one) for owner in kind.__mro__ for name, one in vars(owner).items()]
    return {
        f"{owner.__qualname__}.{name}": one
        for owner, name, one in found
        if isinstance(one, FunctionType) and not _of_library(one)
    }


def _of_library(function: FunctionType) -> bool:
    """Whether a function belongs to an installed package, to Python or to this library."""
    file = Path(function.__globals__.get("__file__") or "")
    return any(map(file.is_relative_to, LIBRARIES)) or not PACKAGES.isdisjoint(file.parts)


def _content_of_module(module: torch.nn.Module) -> Any:
    """Return what determines a module: tensors, and of each part its other attributes and its methods."""
    parts = [[_attributes(part), _methods(type(part))] for part in module.modules()]
    return [repr(module), {**module.state_dict(), **dict(module.named_buffers())}, parts]


def _attributes(part: torch.nn.Module) -> dict[str, Any]:
    """Return the attributes of a module; of a library's, its options alone: others may change with every call."""
    found = {name: value for name, value in vars(part).items() if name not in OF_EVERY_MODULE}
    return found if _methods(type(part)) else {name: value for name, value in found.items() if _is_option(name, value)}


def _is_option(name: str, value: Any) -> bool:
    """Whether an attribute of a library's module is public and plain, or a function that holds nothing."""
    return not name.startswith("_") and isinstance(value, OPTIONS) and not getattr(value, "__closure__", None)


CONTENTS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    # The result does not depend on which processes share the samples.
    (Sharded, lambda strategy: strategy.inner),
    (np.random.RandomState, lambda state: state.get_state()),
    (torch.nn.Module, _content_of_module),
    (MethodType, lambda method: [method.__func__, method.__self__]),
    (partial, lambda call: [call.func, call.args, call.keywords]),
    (FunctionType, _content_of_function),
    # A function by what it does: its bytecode, the names it uses, and its constants, including functions.
    (CodeType, lambda code: [code.co_code.hex(), [code.co_names, code.co_consts]]),
    ((BuiltinFunctionType, type), lambda named: [named.__module__, named.__qualname__]),
    (ModuleType, lambda module: module.__name__),
    # Other loggers, which it leads to, depend on what was imported.
    (logging.Logger, lambda logger: logger.name),
)
