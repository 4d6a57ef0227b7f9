"""Parameter grids: the fits of a grid, and the candidates that share a fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from drkm.estimator import ConstrDRKM
from drkm.problem.energy import layer_slices
from drkm.training.parameters import component_columns, plan_of, strategy
from drkm.validation.nested import PARTS

#: keys of a grid that are not parameters of the estimator
OWN_KEYS = ("keep", "components")

#: the kept components of candidates that share a fit, each with its place in the grid
Variants = list[tuple[int, dict[str, Any]]]


def fits_of(grid: Any) -> list[tuple[dict[str, Any], Variants]]:
    """Return the fits of a grid, each with its variants of kept components and their place in the grid."""
    grids = [grid] if isinstance(grid, Mapping) or not isinstance(grid, Iterable) else list(grid)
    if not all(isinstance(part, Mapping) for part in grids):
        raise TypeError(f"grid: expected lists of values by name of parameter, or several of those, got {grid!r}")
    known = (*ConstrDRKM().get_params(), *OWN_KEYS)
    fits: dict[Any, tuple[dict[str, Any], Variants]] = {}
    place = itertools.count()
    for part in grids:
        for name, values in part.items():
            if name not in known and str(name).partition("__")[0] not in PARTS:
                raise ValueError(f"grid: unknown parameter {name!r}, allowed are {', '.join(known)}")
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise TypeError(f"grid: expected a list of values to try for {name}, got {values!r}")
        for one, other in (("keep", "components"), ("sigma2", "kernel")):
            if one in part and other in part:
                raise ValueError(f"grid: {one} and {other} exclude each other, give one of them")
        for values in itertools.product(*part.values()):
            fixed, variant = split(dict(zip(part, values, strict=True)))
            fits.setdefault(_key(fixed), (fixed, []))[1].append((next(place), variant))
    if not fits:
        raise ValueError("grid: expected at least one candidate, got none")
    return list(fits.values())


def _key(value: Any) -> Any:
    """Return a key that is equal for equal values; arrays and the like are equal only to themselves."""
    if isinstance(value, Mapping):
        return tuple((name, _key(entry)) for name, entry in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def split(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split parameters into those of the fit and those of the candidate's kept components."""
    variant = {name: params[name] for name in OWN_KEYS if name in params}
    return {name: value for name, value in params.items() if name not in variant}, variant


def configured(base: ConstrDRKM, fixed: Mapping[str, Any]) -> ConstrDRKM:
    """Return an estimator with the parameters of a fit."""
    model = clone(base)
    params = dict(fixed)
    if "sigma2" in params and not isinstance(model.kernel, str):
        # Kernel objects have bandwidths of their own, which the grid replaces; kernels given by name keep theirs.
        given = model.kernel if isinstance(model.kernel, list | tuple) else ()
        named = any(isinstance(one, str) for one in given)
        params["kernel"] = tuple(one if isinstance(one, str) else "rbf" for one in given) if named else "rbf"
    return model.set_params(**params)


def check(base: ConstrDRKM, fixed: Mapping[str, Any], variants: Variants, n: int) -> None:
    """Refuse a candidate that cannot be fitted to n samples before any fit is run."""
    params = configured(base, fixed).get_params(deep=False)
    slices = layer_slices(plan_of(params, n, strategy(params["gram"])).sizes)
    for _, variant in variants:
        component_columns(kept_components(variant, slices), slices)


def kept_components(variant: Mapping[str, Any], slices: Sequence[slice]) -> list[tuple[int, int]] | Any:
    """Return the components of a variant in the format of `denoise`."""
    if "keep" not in variant:
        return variant.get("components")
    keep = variant["keep"]
    sizes = [block.stop - block.start for block in slices]
    counts = [keep] * len(sizes) if isinstance(keep, int | np.integer) else keep
    if (
        not isinstance(counts, Sequence | np.ndarray)
        or len(counts) != len(sizes)
        or not all(isinstance(k, int | np.integer) and 0 <= k <= size for k, size in zip(counts, sizes, strict=True))
    ):
        raise ValueError(f"keep: the layers have {sizes} components, got {keep!r}")
    return [(layer, i) for layer, count in enumerate(counts, 1) for i in range(count)]


def describe(params: Mapping[str, Any]) -> str:
    """Return the parameters of a candidate as text."""

    def short(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.4g}"
        if isinstance(value, list | tuple):
            return "(" + ", ".join(short(entry) for entry in value) + ")"
        return value.describe() if hasattr(value, "describe") else str(value)

    return ", ".join(f"{name}={short(value)}" for name, value in params.items())
