"""Fitted models on disk: one safetensors file, arrays as tensors and everything else as JSON.

A file holds the samples, unless the first layer has Nyström features: encoding and pre-images then need no more than
the landmarks and a few numbers a sample. It never holds code: feature maps are stored as the numbers of their module,
and `load` needs the module itself.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from drkm import axes, checks, kernels, parameters, reduction, solvers, storage
from drkm import gram as grams
from drkm.energy import Energy
from drkm.gram import Strategy
from drkm.gram.features import CodedFeatures
from drkm.gram.memory import in_memory
from drkm.kernels import FeatureMap, Kernel
from drkm.preparation import Preparation
from drkm.rows import AbsentRows, Rows, largest_values
from drkm.solvers import Eigensolver, Result
from drkm.training import Trained, layer_supports, layer_traces

if TYPE_CHECKING:
    from drkm.estimator import ConstrDRKM

#: version 2 has models without their samples; all others are written as version 1
KIND, VERSION = "model", 2
PREPARATION = "preparation."
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
#: what makes a kernel known to files
REGISTER = "@drkm.kernels.register"
NAMED = ("init", "solver", "gram", "dtype")
SOLVERS: dict[str, Any] = {**solvers.NAMES, "eigensolver": Eigensolver}


def save(model: ConstrDRKM, path: str | os.PathLike[str], preparation: Preparation | None = None) -> None:
    """Write a fitted model, with what was done to its data before it saw them."""
    trained = model._trained
    energy, result = trained.energy, trained.result
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
    for layer, kernel in enumerate(energy.kernels):
        tensors |= {f"{kernel.prefix}{layer}.{name}": value for name, value in kernel.arrays.items()}
    header: dict[str, Any] = {
        "kind": KIND,
        "version": 1 if without_samples is None else 2,
        "parameters": _describe_parameters(model._chosen, result.H.dtype),
        "kernels": [_describe(kernel) for kernel in energy.kernels],
        "asked": _asked(model._chosen["kernel"]),
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
        tensors |= {PREPARATION + name: tensor for name, tensor in more.items()}
    storage.write(path, tensors, header)


def load_preparation(path: str | os.PathLike[str]) -> Preparation:
    """Return what was done to the data before the model in this file saw them; nothing, for a model made in Python."""
    tensors, header = storage.read(path, KIND, VERSION, prefix=PREPARATION)
    try:
        parts = {name.removeprefix(PREPARATION): tensor for name, tensor in tensors.items()}
        return Preparation.from_parts(parts, header.get("preparation") or {})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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
        return _rebuild(ConstrDRKM, tensors, header, feature_maps or {})
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, RuntimeError) as error:
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
    _check(tensors, header)
    layers = [_kernel(entry, layer, tensors, feature_maps, H) for layer, entry in enumerate(header["kernels"])]
    model = kind(**chosen, kernel=_asked_kernel(header["asked"], layers) if "asked" in header else list(layers))
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


def _check(tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Make sure that the parts of a file fit together."""
    n = len(tensors["H"])
    sizes = parameters.layer_sizes(header["sizes"], n)
    parameters.one_of("axes", header["axes"], axes.NAMES)
    checks.integer("n_features", header["n_features"], 1)
    for name in ("eta", "lam"):
        if not isinstance(header[name], list):
            raise TypeError(f"{name}: expected a list")
        checks.per_layer(name, header[name], len(sizes))
    if len(header["kernels"]) != len(sizes):
        raise ValueError(f"kernels: expected one for each of the {len(sizes)} layers")
    total = sum(sizes)
    shapes: dict[str, tuple[int, ...]] = {"H": (n, total), "multipliers": (total, total)}
    if header["version"] == 1:
        shapes["X"] = (n, header["n_features"])
    else:
        count, width = tensors["first.basis"].shape
        shapes |= {"first.phi": (n, width), "first.lengths": (n,)}
        shapes["kernel0.factor"] = (len(tensors["kernel0.landmarks"]), count)
        shapes["largest"] = (len(tensors["largest"]), header["n_features"])
    shapes |= {f"rotation{layer}": (size, size) for layer, size in enumerate(sizes)}
    shapes |= {f"eigenvalues{layer}": (size,) for layer, size in enumerate(sizes)}
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensors[name].shape)}")


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


def _describe(kernel: Kernel) -> dict[str, Any]:
    name = type(kernel).__name__
    if kernels.KINDS.get(name) is not type(kernel):
        raise ValueError(f"kernel: no file could be read with {name}, put {REGISTER} above its class before saving")
    return kernel.entry


def _asked(kernel: Any) -> Any:
    """Return the parameter `kernel`, whose rules another fit would follow anew, as JSON."""
    if isinstance(kernel, str):
        return kernel
    return _describe(kernel) if isinstance(kernel, Kernel) else [_asked(entry) for entry in kernel]


def _asked_kernel(entry: Any, layers: Sequence[Kernel]) -> Any:
    """Return the parameter `kernel` that `_asked` wrote; a feature map is that of the trained layer."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, list):
        return [_asked_kernel(part, [layer]) for part, layer in zip(entry, layers, strict=True)]
    kind = _kind(entry)
    return layers[0] if kind is FeatureMap else kind(**entry["parameters"])


def _kind(entry: dict[str, Any]) -> type[Kernel]:
    if entry["type"] not in kernels.KINDS:
        raise ValueError(
            f"path: the model has a kernel {entry['type']!r} that is not known here, import the module that defines "
            f"it, with {REGISTER} above the class, before you load the model"
        )
    return kernels.KINDS[entry["type"]]


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


def _kernel(
    entry: dict[str, Any], layer: int, tensors: dict[str, Tensor], feature_maps: Mapping[int, Any], like: Tensor
) -> Kernel:
    kind = _kind(entry)
    prefix = f"{kind.prefix}{layer}."
    arrays = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    if "kernel" in entry:
        return kind(_kernel(entry["kernel"], layer, tensors, feature_maps, like), **arrays)  # type: ignore[call-arg]
    if kind is not FeatureMap:
        return kind(**entry["parameters"])
    if layer + 1 not in feature_maps:
        raise ValueError(
            f"feature_maps: the model has a feature map in layer {layer + 1}, "
            f"pass it as feature_maps={{{layer + 1}: map}}"
        )
    settings = entry["parameters"]
    chosen = feature_maps[layer + 1]
    if not callable(chosen):
        raise ValueError(f"feature_maps: expected a callable or a torch.nn.Module, got {chosen!r}")
    if isinstance(chosen, torch.nn.Module):
        # A copy, because the caller's module is not ours to change; evaluated as it was while fitting.
        chosen = copy.deepcopy(chosen).to(like).eval()
        try:
            chosen.load_state_dict(arrays)
        except RuntimeError as error:
            raise ValueError(
                f"feature_maps: the module for layer {layer + 1} does not have the parameters that were saved"
            ) from error
    return FeatureMap(chosen, normalize=settings["normalize"], trainable=settings["trainable"])
