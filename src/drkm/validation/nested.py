"""Nested parameters by scikit-learn's names: `kernel__sigma2`, `kernel__layer1__sigma2`, `gram__m`.

Kernels, solvers and strategies are immutable: setting a parameter of one replaces it by another.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

#: parameters of the estimator that may be objects with parameters
PARTS = ("kernel", "solver", "gram")


class NestedParameters(BaseEstimator):
    """An estimator whose kernel, solver and gram objects have parameters too."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep=True` also those of kernel, solver and gram objects.

        Nested names are `kernel__sigma2` (with one kernel per layer, `kernel__layer1__sigma2`), `solver__memory` or
        `gram__m`.
        """
        params = super().get_params(deep=False)
        inner = [names(name, params[name]) for name in PARTS if name in params] if deep else []
        return params | {name: value for found in inner for name, value in found.items()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by the names that `get_params` returns; kernel, solver and gram objects are never mutated."""
        known = super().get_params(deep=False)
        inner = [name for name in params if name.startswith(tuple(f"{part}__" for part in PARTS if part in known))]
        super().set_params(**{name: value for name, value in params.items() if name not in inner})
        # In sorted order, an object comes before the parameters inside it.
        for full in sorted(inner):
            name, _, path = full.partition("__")
            setattr(self, name, changed(name, getattr(self, name), path, params[full]))
        return self


def names(name: str, value: Any) -> dict[str, Any]:
    """Return the parameters inside a value, recursively, by their full names."""
    found: dict[str, Any] = {}
    for inner, part in _inside(value).items():
        full = f"{name}__{inner}"
        found |= {full: part} | names(full, part)
    return found


def changed(name: str, value: Any, path: str, new: Any) -> Any:
    """Return the value with the parameter at a path replaced by `new`."""
    head, _, rest = path.partition("__")
    inside = _inside(value)
    if head not in inside:
        raise ValueError(f"{name}__{path}: unknown parameter, {name} is {value!r}{_valid(name, value)}")
    part = changed(f"{name}__{head}", inside[head], rest, new) if rest else new
    if isinstance(value, list | tuple):
        return type(value)((inside | {head: part}).values())
    return replace(value, **{head: part})


def _inside(value: Any) -> dict[str, Any]:
    if isinstance(value, list | tuple):
        return {f"layer{number}": entry for number, entry in enumerate(value, 1)}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return {}


def _valid(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f", a name without parameters: pass a drkm.{_module(name)} object instead"
    valid = list(names(name, value))
    return f", which has {', '.join(valid)}" if valid else ", which has none"


def _module(name: str) -> str:
    first = name.partition("__")[0]
    return first if first == "gram" else f"{first}s"
