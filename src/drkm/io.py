"""Fitted models on disk: one safetensors file, arrays as tensors and everything else as JSON.

A file holds the samples, unless the first layer has Nyström features: encoding and pre-images then need no more than
the landmarks and a few numbers a sample. It never holds code: feature maps are stored as the numbers of their module,
and `load` needs the module itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from drkm import gram as grams
from drkm import model_parts, parameters, reduction, solvers, storage
from drkm.energy import Energy
from drkm.gram import Strategy
from drkm.gram.features import CodedFeatures
from drkm.gram.memory import in_memory
from drkm.kernels import files
from drkm.preparation import Preparation
from drkm.rows import AbsentRows, Rows, largest_values
from drkm.solvers import Eigensolver, Result
from drkm.training import Trained, layer_supports, layer_traces

if TYPE_CHECKING:
    from drkm.estimator import ConstrDRKM

#: version 2 has models without their samples; all others are written as version 1
KIND, VERSION = "model", 2
#: parameters that a file can hold as they are; objects among them are stored by name or left at their default
PLAIN = (
    "n_components",
    "center",
    "eta",
    "lam",
    "n_init",
    "axes",
    "encoder",
    "learn_bandwidth",
    "tol",
    "max_iter",
    "max_seconds",
    "verbose",
)
NAMED = ("init", "solver", "gram", "dtype")
SOLVERS: dict[str, Any] = {**solvers.NAMES, "eigensolver": Eigensolver}


def save(model: ConstrDRKM, path: str | os.PathLike[str], preparation: Preparation | None = None) -> None:
    """Write a fitted model, with what was done to its data before it saw them."""
    trained = model._trained
    energy, result = trained.energy, trained.result
    layers, asked = [files.entry_of(kernel) for kernel in energy.kernels], files.asked_entry(model._chosen["kernel"])
    without_samples = _first_without_samples(energy, result.H)
    samples = {"H": reduction.gather(result.H)}
    if without_samples is None:
        samples["X"] = reduction.gather(in_memory(energy.X))
    else:
        samples["first.phi"] = reduction.gather(without_samples.phi)
        samples["first.lengths"] = reduction.gather(without_samples.lengths)
        samples["first.basis"] = without_samples.basis
        samples["largest"] = reduction.gather(largest_values(energy.X), 1)
    if not reduction.is_first():
        return
    tensors: dict[str, Tensor] = {**samples, "multipliers": trained.multipliers}
    for layer, (R, values) in enumerate(zip(trained.rotation, trained.eigenvalues, strict=True)):
        tensors[f"rotation{layer}"] = R
        tensors[f"eigenvalues{layer}"] = values
    tensors |= files.arrays_of(energy.kernels)
    header: dict[str, Any] = {
        "kind": KIND,
        "version": 1 if without_samples is None else 2,
        "parameters": _describe_parameters(model._chosen, result.H.dtype),
        "kernels": layers,
        "asked": asked,
        "sizes": energy.sizes,
        "eta": energy.eta,
        "lam": model._lam,
        "axes": model._axes,
        "n_features": model.n_features_in_,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "kind_of_array": _kind_of_array(model),
        "objectives": trained.objectives,
        "errors": trained.errors,
        "at_bound": trained.at_bound,
        "result": result.facts(),
    }
    if preparation is not None:
        more, header["preparation"] = preparation.parts()
        tensors |= {model_parts.PREPARATION + name: tensor for name, tensor in more.items()}
    storage.write(path, tensors, header)


def load_preparation(path: str | os.PathLike[str]) -> Preparation:
    """Return what was done to the data before the model in this file saw them; nothing, for a model made in Python."""
    tensors, header = storage.read(path, KIND, VERSION, prefix=model_parts.PREPARATION)
    try:
        return model_parts.preparation(tensors, header)
    except (TypeError, ValueError) as error:
        raise ValueError(f"path: {path} is damaged, how its data were prepared cannot be read ({error})") from error


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    feature_maps: Mapping[int, Any] | None = None,
) -> ConstrDRKM:
    """Read a model that `ConstrDRKM.save` wrote.

    Parameters
    ----------
    path : str or path
    device : str or torch.device, default="cpu"
        Where the model is to live; it need not be where it was trained.
    feature_maps : mapping from layer (counted from 1) to callable, optional
        The maps behind `FeatureMap` kernels, whose code no file holds; a module gets its trained numbers back.
    """
    from drkm.estimator import ConstrDRKM

    tensors, header = storage.read(path, KIND, VERSION, parameters.device(device, None, 0))
    try:
        model_parts.check(tensors, header)
        return _rebuild(ConstrDRKM, tensors, header, feature_maps or {})
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if str(error).startswith(("path: ", "feature_maps: ")):
            raise
        why = (str(error).splitlines() or [""])[0]
        raise ValueError(
            f"path: {path} is damaged, a part of the model is missing or of the wrong kind ({why})"
        ) from error


def _rebuild(
    kind: type[ConstrDRKM], tensors: dict[str, Tensor], header: dict[str, Any], feature_maps: Mapping[int, Any]
) -> ConstrDRKM:
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in header["parameters"].items()
    }
    if isinstance(chosen.get("gram"), dict):
        chosen["gram"] = _strategy(chosen["gram"])
    if isinstance(chosen.get("solver"), dict):
        chosen["solver"] = SOLVERS[chosen["solver"]["name"]](**chosen["solver"]["settings"])
    H = tensors["H"]
    layers = [
        files.trained_kernel(entry, layer, tensors, feature_maps, H) for layer, entry in enumerate(header["kernels"])
    ]
    model = kind(**chosen, kernel=files.asked_kernel(header["asked"], layers) if "asked" in header else list(layers))
    _check_plan(model, header, len(H))
    X: Tensor | Rows
    if header["version"] == 1:
        X, first = tensors["X"], None
    else:
        X = AbsentRows((len(H), header["n_features"]), tensors["largest"])
        first = CodedFeatures(tensors["first.phi"], tensors["first.basis"], tensors["first.lengths"])
    strategy = parameters.strategy(model.gram)
    energy = Energy(X, layers, header["sizes"], header["eta"], strategy, bool(model.center), first)
    result = Result.from_facts(H, header["result"])
    count = len(layers)
    trained = Trained(
        energy,
        result,
        tensors["multipliers"],
        [tensors[f"rotation{layer}"] for layer in range(count)],
        [tensors[f"eigenvalues{layer}"] for layer in range(count)],
        header["objectives"],
        header.get("errors", [None] * count),
        layer_traces(energy, H),
        layer_supports(energy, H),
        header.get("at_bound", []),
    )
    model.n_features_in_ = header["n_features"]
    if header["feature_names"]:
        model.feature_names_in_ = np.asarray(header["feature_names"], dtype=object)
    model._set_fitted(trained, header["lam"], header["axes"], H if header["kind_of_array"] == "torch" else None)
    model._fitted_to_frame = header["kind_of_array"] == "pandas"
    return model


def _kind_of_array(model: ConstrDRKM) -> str:
    if model._fitted_to_frame:
        return "pandas"
    return "torch" if isinstance(model.codes_, Tensor) else "numpy"


def _check_plan(model: ConstrDRKM, header: dict[str, Any], n: int) -> None:
    """Make sure that the parameters are those of the fit."""
    plan = parameters.plan_of(model.get_params(deep=False), n)
    parameters.dtype(model.dtype, torch.device("cpu"))
    chosen = {"sizes": plan.sizes, "eta": plan.eta, "lam": plan.lam}
    for name, values in chosen.items():
        if list(values) != header[name]:
            raise ValueError(f"{name}: expected {list(values)} by the parameters, got {header[name]}")
    if not 1 <= len(header["objectives"]) <= plan.n_init:
        raise ValueError(f"objectives: expected one for each start, got {len(header['objectives'])}")
    if plan.axes != header["axes"]:
        raise ValueError(f"axes: expected {plan.axes} by the parameters, got {header['axes']}")


def _first_without_samples(energy: Energy, H: Tensor) -> CodedFeatures | None:
    """Return what a model needs of its samples in the first layer, or None if these are needed for pre-images."""
    return energy.first_uncentered.coded(H) if energy.kernels[0].preimages_without_samples else None


def _describe_parameters(chosen: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Return the parameters of the estimator that a file can hold, as JSON."""
    simple = {name: chosen[name] for name in PLAIN}
    simple |= {name: chosen[name] for name in NAMED if isinstance(chosen[name], str)}
    if not isinstance(chosen["dtype"], str):
        simple["dtype"] = str(dtype).removeprefix("torch.")
    if type(chosen["solver"]) in SOLVERS.values():
        simple["solver"] = {"name": chosen["solver"].name, "settings": vars(chosen["solver"])}
    if isinstance(chosen["gram"], Strategy) and chosen["gram"].name in grams.NAMES:
        simple["gram"] = _describe_strategy(chosen["gram"])
    if isinstance(chosen["random_state"], Integral):
        simple["random_state"] = chosen["random_state"]
    return simple


def _describe_strategy(strategy: Strategy) -> dict[str, Any]:
    # The file holds all samples: whoever reads it need not share them.
    own = strategy.alone
    settings = {
        name: _describe_strategy(value) if isinstance(value, Strategy) else value for name, value in vars(own).items()
    }
    return {"name": own.name, "settings": settings}


def _strategy(entry: dict[str, Any]) -> Strategy:
    if entry["name"] not in grams.NAMES:
        raise ValueError(f"path: the model has a gram {entry['name']!r} that this drkm does not know")
    settings = {
        name: _strategy(value) if isinstance(value, dict) else value for name, value in entry["settings"].items()
    }
    return grams.NAMES[entry["name"]](**settings)
