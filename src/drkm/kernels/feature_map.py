"""Kernels defined by a feature map."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from drkm.files.rows import tiles
from drkm.kernels.base import Explicit, register
from drkm.validation import checks
from drkm.wording import dtype_name

#: rows whose features are also computed alone, and the largest difference from their features with other rows that
#: counts as rounding
FEW, DEPENDENT = 2, 1e-3
#: rows whose features are checked together
LOOK_ROWS = 512


@register
@dataclass(frozen=True)
class FeatureMap(Explicit):
    """k(x, y) = φ(x)·φ(y) for a function or a `torch.nn.Module` φ from m×d to m×D tensors.

    Parameters
    ----------
    map : callable or torch.nn.Module
        φ, applied to a batch of rows. It must treat rows independently, not modify them, and return the same result
        every time; in a deep layer it must be differentiable by torch. A module is used in evaluation mode.
    normalize : bool
        Scale every φ(x) to norm 1. A trainable map must be normalised: the energy rewards scale without bound.
    trainable : bool
        Adapt the module's parameters during `fit`, alternating with the codes.
    """

    map: Callable[[Tensor], Tensor] = field(repr=False)
    normalize: bool = True
    trainable: bool = False
    rotation_invariant = False
    prefix = "map"
    #: number of features, once the map has been checked
    _width = None

    def __post_init__(self) -> None:
        if not callable(self.map):
            raise TypeError(f"map: expected a callable or a torch.nn.Module, got {type(self.map).__name__}")
        for name in ("normalize", "trainable"):
            checks.boolean(name, getattr(self, name))
        if self.trainable and not self.module_parameters():
            raise TypeError("trainable: the feature map has no parameters to train, pass a torch.nn.Module")
        if self.trainable and not self.normalize:
            raise ValueError("normalize: a trainable feature map must be normalised, got normalize=False")

    @property
    def rough(self) -> str:
        """Where normalisation makes it discontinuous."""
        return "jumps where its features vanish: add a constant one, use normalize=False" if self.normalize else ""

    def module_parameters(self) -> list[torch.nn.Parameter]:
        """Return the parameters of the module, if it is one."""
        return list(self.map.parameters()) if isinstance(self.map, torch.nn.Module) else []

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name; the map is given by the name of its type."""
        name = getattr(self.map, "__name__", type(self.map).__name__)
        return {"map": name, "normalize": self.normalize, "trainable": self.trainable}

    @property
    def arrays(self) -> dict[str, Tensor]:
        """Parameters of the module, if the map is one; files do not hold its code."""
        return dict(self.map.state_dict()) if isinstance(self.map, torch.nn.Module) else {}

    def width(self, inputs: int) -> int:
        """Return the number of features; the number of inputs until the map has been checked."""
        return inputs if self._width is None else self._width

    def widest(self, inputs: int) -> int:
        """Return the size of the largest intermediate result per point, as far as a module's parameters show it."""
        return max([super().widest(inputs), *(len(one) for one in self.module_parameters() if one.ndim)])

    def features(self, x: Tensor) -> Tensor:
        """Return φ of every row, normalised if asked."""
        phi = self.map(x)
        return torch.nn.functional.normalize(phi, dim=1) if self.normalize else phi

    def resolve(self, points: Tensor, *, layer: int) -> FeatureMap:
        """Check the values of the map and return the kernel with a copy of its module on the device of the data."""
        phi = self.map
        if isinstance(phi, torch.nn.Module):
            # A copy, because fitting must not change the caller's parameters.
            phi = copy.deepcopy(phi).to(device=points.device, dtype=points.dtype).eval()
        kernel = replace(self, map=phi)
        object.__setattr__(kernel, "_width", _look(phi, points, layer))
        return kernel


def _look(phi: Callable[[Tensor], Tensor], points: Tensor, layer: int) -> int:
    """Return the number of features, or raise an error if the map cannot be used in this layer.

    Maps of deep layers must be differentiable.
    """
    name = f"kernel: the feature map of layer {layer}"
    few, total = points[:FEW].clone(), points.sum()
    widths, largest = set(), []
    begun: list[Tensor] = []
    for rows in tiles(points, LOOK_ROWS):
        features = _features(phi, points[rows], name)
        if not torch.isfinite(features).all():
            raise ValueError(f"{name} returns NaN or inf")
        begun = begun or [features.clone()]
        widths.add(features.shape[1])
        largest.append(features.abs().max())
    if points.sum() != total:
        raise ValueError(f"{name} must not change the values it is given, got others after a call")
    deep = layer > 1
    alone = _features(phi, few.requires_grad_(deep), name, traced=deep)
    allowed = DEPENDENT * torch.stack(largest).max()
    # All rows of a tile: what is random may agree on a few of them by chance.
    again = _features(phi, points[: len(begun[0])], name)
    for found, how in ((alone, f"for the first {FEW} alone"), (again, "the second time")):
        if widths != {found.shape[1]} or not (found - begun[0][: len(found)]).abs().max() <= allowed:
            raise ValueError(
                f"{name} must give a row the same features whatever other rows it is given with, and every time, "
                f"got other ones {how}"
            )
    slope = torch.autograd.grad(alone.sum(), few, allow_unused=True)[0] if alone.requires_grad else None
    if deep and slope is None:
        raise ValueError(f"{name} must be differentiable by torch, got features without gradients")
    return alone.shape[1]


def _features(phi: Callable[[Tensor], Tensor], points: Tensor, name: str, *, traced: bool = False) -> Tensor:
    """Return the features of points after a check that there is one row per point, in the same precision."""
    try:
        with torch.set_grad_enabled(traced):
            features = phi(points)
    except Exception as error:
        shape = "×".join(map(str, points.shape))
        raise ValueError(f"{name} fails on {shape} values ({error})") from error
    rows = len(points)
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != rows or features.shape[1] == 0:
        got = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"{name} must return a tensor of {rows}×D values, got {got}")
    if features.layout != torch.strided:
        raise ValueError(f"{name} must return a dense tensor, got a sparse one")
    if features.dtype != points.dtype:
        wanted, other = (dtype_name(kind) for kind in (points.dtype, features.dtype))
        raise ValueError(f"{name} must return {wanted} values, as it is given, got {other}")
    return features
