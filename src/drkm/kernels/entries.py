"""Kernels in model files: one entry per kernel in the header, and the arrays of some.

Files hold no code. A feature map is stored as the parameters of its module, and a custom kernel by the name of its
class, which must be registered (`register`) in the program that loads the file.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from drkm.kernels.approximation import Approximation
from drkm.kernels.base import KINDS, Kernel
from drkm.kernels.feature_map import FeatureMap


def entry_of(kernel: Kernel) -> dict[str, Any]:
    """Return the header entry of a kernel, or raise an error if `load` could not rebuild it."""
    if kernel.original is not kernel:
        entry_of(kernel.original)
    name = type(kernel).__name__
    if KINDS.get(name) is not type(kernel):
        raise ValueError(
            f"kernel: a file holds no code, and {name} is not registered: put "
            "@drkm.kernels.register above its class and fit again, or save codes and samples as arrays"
        )
    return kernel.entry


def asked_entry(kernel: Any) -> Any:
    """Return the parameter `kernel` of the estimator as JSON; its rules apply again in another fit."""
    if isinstance(kernel, str):
        return kernel
    return entry_of(kernel) if isinstance(kernel, Kernel) else [asked_entry(entry) for entry in kernel]


def asked_kernel(entry: Any, layers: Sequence[Kernel]) -> Any:
    """Rebuild the parameter `kernel` that `asked_entry` wrote.

    A feature map, and the landmarks or frequencies of an approximation, are those of the trained layer.
    """
    if isinstance(entry, str):
        return entry
    if isinstance(entry, list):
        return [asked_kernel(part, [layer]) for part, layer in zip(entry, layers, strict=True)]
    kind: Any = KINDS.written(entry["type"])
    if issubclass(kind, Approximation):
        # Not in the basis of the codes, to which a fit reduces landmarks, and with the bandwidth before it was learned.
        return layers[0].with_parameters(**entry["kernel"]["parameters"])
    return layers[0] if kind is FeatureMap else kind(**entry["parameters"])


def arrays_of(kernels: Sequence[Kernel]) -> dict[str, Tensor]:
    """Return the arrays of the kernels of all layers, by their names in a file."""
    return {
        f"{kernel.prefix}{layer}.{name}": value
        for layer, kernel in enumerate(kernels)
        for name, value in kernel.arrays.items()
    }


def trained_kernel(
    entry: dict[str, Any], layer: int, tensors: dict[str, Tensor], feature_maps: Mapping[int, Any], like: Tensor
) -> Kernel:
    """Rebuild the kernel of a trained layer (counted from 0)."""
    kind: Any = KINDS.written(entry["type"])
    prefix = f"{kind.prefix}{layer}."
    arrays = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    if issubclass(kind, FeatureMap):
        return _feature_map(entry["parameters"], layer, arrays, feature_maps, like)
    if not issubclass(kind, Approximation):
        made = kind(**entry["parameters"])
        _check_numbers(made, layer)
        return made
    inner = trained_kernel(entry["kernel"], layer, tensors, feature_maps, like)
    if not isinstance(inner, kind.serves):
        raise ValueError(f"kernels: {type(inner).__name__} has no {kind.__name__}")
    approximation = kind.read(inner, entry, arrays)
    approximation.check()
    return approximation


def _check_numbers(kernel: Kernel, layer: int) -> None:
    """Check that a kernel can belong to a trained layer: all its rules are resolved to numbers."""
    for name in kernel.rules:
        if isinstance(kernel.parameters[name], str):
            found = kernel.parameters[name]
            raise ValueError(f"kernels: expected a number for {name} of layer {layer + 1}, got {found!r}")
    if kernel.is_given and layer > 0:
        raise ValueError(f"kernels: a precomputed Gram matrix belongs in layer 1, got it in layer {layer + 1}")


def _feature_map(
    settings: dict[str, Any], layer: int, arrays: dict[str, Tensor], feature_maps: Mapping[int, Any], like: Tensor
) -> FeatureMap:
    if layer + 1 not in feature_maps:
        raise ValueError(
            f"feature_maps: the model has a feature map in layer {layer + 1}, "
            f"pass it as feature_maps={{{layer + 1}: map}}"
        )
    chosen = feature_maps[layer + 1]
    if not callable(chosen):
        raise ValueError(f"feature_maps: expected a callable or a torch.nn.Module, got {chosen!r}")
    if isinstance(chosen, torch.nn.Module):
        # A copy, because the caller's module must not change; in evaluation mode, as during the fit.
        chosen = copy.deepcopy(chosen).to(like).eval()
        try:
            chosen.load_state_dict(arrays)
        except RuntimeError as error:
            raise ValueError(
                f"feature_maps: the module for layer {layer + 1} does not have the parameters that were saved"
            ) from error
    return FeatureMap(chosen, normalize=settings["normalize"], trainable=settings["trainable"])
