"""A kernel given by its feature map."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from drkm.kernels.base import Explicit

#: rows that are looked at alone, and the difference to what they get with others that is more than rounding
FEW, DEPENDENT = 2, 1e-3


@dataclass(frozen=True)
class FeatureMap(Explicit):
    """k(x, y) = φ(x)·φ(y) for a function or a `torch.nn.Module` φ from m×d to m×D tensors.

    Parameters
    ----------
    map : callable or torch.nn.Module
        φ, applied to a batch of rows. It must treat rows independently and give the same answer every time; a module
        is used in evaluation mode.
    normalize : bool
        Scale every φ(x) to norm 1. A trainable map must be normalised: the energy rewards scale without bound.
    trainable : bool
        Adapt the module's parameters during `fit`, alternating with the codes.
    """

    map: Callable[[Tensor], Tensor] = field(repr=False)
    normalize: bool = True
    trainable: bool = False
    rotation_invariant = False

    def __post_init__(self) -> None:
        if not callable(self.map):
            raise TypeError(f"map: expected a callable or a torch.nn.Module, got {type(self.map).__name__}")
        if self.trainable and not self.module_parameters():
            raise TypeError("trainable: the feature map has no parameters to train, pass a torch.nn.Module")
        if self.trainable and not self.normalize:
            raise ValueError("normalize: a trainable feature map must be normalised, got normalize=False")

    @property
    def rough(self) -> str:
        """Where it is not differentiable, whatever the map is."""
        return "jumps where its features vanish: add a constant one, use normalize=False" if self.normalize else ""

    def module_parameters(self) -> list[torch.nn.Parameter]:
        """Return the parameters of the module, if it is one."""
        return list(self.map.parameters()) if isinstance(self.map, torch.nn.Module) else []

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings by name, the map by the name of its type."""
        name = getattr(self.map, "__name__", type(self.map).__name__)
        return {"map": name, "normalize": self.normalize, "trainable": self.trainable}

    def features(self, x: Tensor) -> Tensor:
        """Return φ of every row, normalised if asked."""
        phi = self.map(x)
        return torch.nn.functional.normalize(phi, dim=1) if self.normalize else phi

    def resolve(self, points: Tensor, *, layer: int) -> FeatureMap:
        """Return the kernel with a copy of its module beside the data, after a look at its values."""
        rows = len(points)
        kernel = self
        if isinstance(self.map, torch.nn.Module):
            # A copy, because fitting must leave the caller's parameters as they are.
            module = copy.deepcopy(self.map).to(device=points.device, dtype=points.dtype).eval()
            kernel = replace(self, map=module)
        given = points
        try:
            with torch.no_grad():
                phi = kernel.map(given)
                given = points[:FEW]
                few = kernel.map(given)
        except Exception as error:
            shape = "×".join(map(str, given.shape))
            raise ValueError(f"kernel: the feature map of layer {layer} fails on {shape} values ({error})") from error
        if not isinstance(phi, Tensor) or phi.ndim != 2 or len(phi) != rows or phi.shape[1] == 0:
            got = tuple(phi.shape) if isinstance(phi, Tensor) else type(phi).__name__
            raise ValueError(
                f"kernel: the feature map of layer {layer} must return a tensor of {rows}×D values, got {got}"
            )
        if not torch.isfinite(phi).all():
            raise ValueError(f"kernel: the feature map of layer {layer} returns NaN or inf")
        if few.shape != phi[:FEW].shape or not (few - phi[:FEW]).abs().max() <= DEPENDENT * phi.abs().max():
            raise ValueError(
                f"kernel: the feature map of layer {layer} must give a row the same features whatever other rows it is "
                f"given with, and every time, got other ones for the first {FEW} alone"
            )
        return kernel
