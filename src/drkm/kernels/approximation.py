"""Kernels replaced by explicit features: φ(x)·φ(y) ≈ k(x, y) for some kernel k.

An approximation is a kernel in its own right, and the kernel of the model that uses it: training, encoding and
pre-images need only its features, and sums over samples are computed once.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.kernels.base import Explicit, Kernel
from drkm.machine.layout import slices

#: rows whose features are computed at once
TABLE_ROWS = 4096


class Approximation(Explicit):
    """Explicit features of a kernel that has none of its own, or too many."""

    #: the kernel that is approximated, and the class that it must have
    kernel: Kernel
    serves: ClassVar[type[Kernel]]

    @property
    def original(self) -> Kernel:
        """The kernel that is approximated."""
        return self.kernel

    @property
    def has_bandwidth(self) -> bool:
        """Whether the approximated kernel has a bandwidth."""
        return self.kernel.has_bandwidth

    @property
    def bandwidth(self) -> float:
        """σ² of the kernel that is approximated."""
        return self.kernel.bandwidth

    @property
    def sigma2(self) -> float:
        """`bandwidth`, under the name that the approximated kernel has for it."""
        return self.bandwidth

    def resolve(self, points: Tensor, *, layer: int) -> Self:
        """Return the features in the precision and on the device of the points."""
        if len(self._inputs) != points.shape[1]:
            name, expected = type(self).__name__, len(self._inputs)
            raise ValueError(f"kernel: {name} are for points of {expected} features, got {points.shape[1]}")
        if self._inputs.dtype == points.dtype and self._inputs.device == points.device:
            return self
        return self._moved(points)

    @property
    @abstractmethod
    def _inputs(self) -> Tensor:
        """One of the arrays, with a row for each feature of a point."""

    def _moved(self, like: Tensor) -> Self:
        """Return the features with all arrays in another precision or on another device."""
        arrays = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        moved = {name: value.to(like) for name, value in arrays.items() if isinstance(value, Tensor)}
        return replace(self, **moved)  # type: ignore[type-var]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the kernel that is approximated, and the number of features."""
        return {**self.kernel.parameters, "features": self.count}

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of features."""

    @property
    @abstractmethod
    def arrays(self) -> dict[str, Tensor]:
        """The numbers that define the features, by the names of the constructor."""

    @property
    def entry(self) -> dict[str, Any]:
        """Entry in the header of a model file: that of the approximated kernel."""
        return {"type": type(self).__name__, "kernel": self.kernel.entry}

    @classmethod
    def read(cls, kernel: Kernel, entry: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """Rebuild the approximation from its entry in the header of a file and its arrays."""
        return cls(kernel, **arrays)  # type: ignore[call-arg]

    def check(self) -> None:
        """Raise an error if arrays that were read from a file cannot belong to the kernel."""

    @abstractmethod
    def error(self, points: Tensor | Rows) -> float:
        """Return an estimate of the relative error at these points."""

    @abstractmethod
    def describe_error(self, error: float) -> str:
        """Return a readable description of an error."""

    def table(self, points: Tensor | Rows) -> Tensor:
        """Return φ of many points, a few thousand rows at a time: no temporary array is as large as the result."""
        out = torch.empty(len(points), self.count, dtype=points.dtype, device=points.device)
        with torch.no_grad():
            for rows in slices(len(points), TABLE_ROWS):
                out[rows] = self.features(points[rows])
        return out
