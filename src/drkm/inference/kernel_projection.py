"""Codes of new points in kernel PCA: affine in kernel values, k(x, X)A - b, or in explicit features."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.arrays.exponents import Exponents, add_product, is_quick
from drkm.kernels.base import KINDS
from drkm.machine.layout import slices
from drkm.machine.threads import one_thread
from drkm.serving import Projection
from drkm.serving.formulas import FORMULAS

#: kernel values with new points that are held at once if scikit-learn computes them
ENTRIES = 1 << 24
#: new points whose features are computed at once, at least: fewer would make thin products
LEAST_ROWS = 1024
#: numbers that one thread reads before a second one wakes up
FEW_NUMBERS = 1 << 23


@dataclass(frozen=True)
class KernelProjection:
    """x ↦ k(x, X)A - b, or φ(x)A - b with explicit features φ.

    Parameters
    ----------
    kernel : Kernel or ScikitKernel
    points : Tensor of shape (n, d), array, sparse matrix or None
        X; None for explicit features.
    weights : Tensor of shape (n, k) or (D, k)
        A.
    shift : Tensor of shape (k,)
        b.
    """

    kernel: Any
    points: Any
    weights: Tensor
    shift: Tensor

    def __call__(self, new: Any) -> Tensor:
        """Return the codes of the rows of a tensor or, for a scikit-learn kernel, of an array, which may be sparse."""
        if not self.kernel.is_of_torch:
            step = max(1, ENTRIES // self.points.shape[0])
            parts = [self.kernel(new[i : i + step], self.points) for i in range(0, new.shape[0], step)]
            products = [np.asarray(part, dtype=self.weights.numpy().dtype) @ self.weights.numpy() for part in parts]
            return torch.from_numpy(np.concatenate(products)) - self.shift
        with torch.no_grad(), one_thread(is_quick(len(new), len(self.weights), new.shape[1])):
            if self.kernel.is_explicit:
                codes = self.weights.new_empty(len(new), self.weights.shape[1])
                for rows in slices(len(new), self._block_rows(new)):
                    codes[rows] = self.kernel.features(new[rows]) @ self.weights - self.shift
                return codes
            codes = self.shift.neg().repeat(len(new), 1)
            add_product(self._exponents, new, self.weights, codes)
            return codes

    def _block_rows(self, new: Tensor) -> int:
        """Return how many points have their features computed at once."""
        rows = max((block.stop - block.start for block in self.kernel.blocks(new)), default=0)
        # Whole multiples begin at aligned addresses, on which last bits depend.
        return max(1, rows // LEAST_ROWS) * LEAST_ROWS

    @cached_property
    def _exponents(self) -> Exponents:
        with one_thread(self.points.numel() < FEW_NUMBERS):
            return Exponents(self.kernel, self.points)

    def __getstate__(self) -> dict[str, Any]:
        # What can be recomputed is not pickled with a model.
        return {name: value for name, value in vars(self).items() if name != "_exponents"}

    def in_fixed_basis(self, numbers: int) -> KernelProjection:
        """Return the projection with features that would be rotated by rounding if another CPU formed them again.

        The factor of Nyström features is kept whole if it has at most so many `numbers`, otherwise in a basis of what
        codes and the mean of the samples need, k + 1 numbers per landmark.
        """
        kernel = self.kernel
        if not getattr(kernel, "preimages_without_samples", False) or kernel.given_factor is not None:
            return self
        if kernel.factor.numel() <= numbers:
            return replace(self, kernel=kernel.in_same_basis)
        mean = kernel.mean_features(self.points)
        B = torch.linalg.qr(torch.cat([self.weights, mean[:, None]], dim=1).double())[0].to(self.weights)
        return replace(self, kernel=kernel.in_basis(B), weights=B.T @ self.weights)

    def module(self, precision: str | None = None) -> ProjectionModule:
        """Return the projection as a `torch.nn.Module`, with codes in this precision or that of its numbers."""
        return ProjectionModule(*self._parts(), None if precision is None else getattr(torch, precision))

    def served(self, precision: str) -> Projection | None:
        """Return the projection with numpy alone if it computes the kernel itself, not an approximation, on the CPU."""
        kernel = self.kernel
        name = type(kernel).__name__
        own = kernel.is_of_torch and kernel.original is kernel and KINDS.get(name) is type(kernel)
        return self.numpy(precision) if own and name in FORMULAS and not self.weights.is_cuda else None

    def numpy(self, precision: str, feature_names: Sequence[str] = ()) -> Projection:
        """Return the projection as a function of arrays, with codes in this precision."""
        kernel, points, weights, shift = self._parts()
        name, parameters, points = ("Linear", {}, None) if kernel is None else kernel.served(points)
        if name not in FORMULAS or (kernel is not None and KINDS[name] is not type(kernel)):
            raise ValueError(
                f"kernel: to_numpy needs one of {', '.join(FORMULAS)}, got {name}; use to_torch, or save the model"
            )
        given = None if points is None else points.numpy(force=True)
        numbers = (weights.numpy(force=True), shift.numpy(force=True))
        return Projection(name, parameters, given, *numbers, precision, tuple(map(str, feature_names)))

    def _parts(self) -> tuple[Any, Tensor | None, Tensor, Tensor]:
        """Return kernel, points, weights and shift of new points; without a kernel, their kernel values are given."""
        if not self.kernel.is_of_torch:
            if self.kernel.metric != "precomputed":
                raise ValueError(
                    "kernel: to_torch and to_numpy need a kernel that torch computes, got "
                    f"{self.kernel.metric!r}; allowed are rbf, linear, cosine, poly of a whole degree, precomputed "
                    "and drkm.kernels objects"
                )
            return None, None, self.weights, self.shift
        if self.kernel.is_given:
            return None, None, self.weights, self.shift
        if self.kernel.preimages_without_samples:
            # Only kernel values with the landmarks are needed: k(x, Z)(FA) - b.
            inner = self.kernel
            return inner.kernel, inner.landmarks, inner.factor @ self.weights, self.shift
        return self.kernel, self.points, self.weights, self.shift


class ProjectionModule(torch.nn.Module):
    """The codes of one layer as a torch module, with all its numbers in buffers and those of a feature map's module.

    It shares nothing that changes with the model: `float()` or training leave the model as it is. `torch.export`
    accepts it, with a dynamic number of points.
    """

    weights: Tensor
    shift: Tensor
    origin: Tensor
    right: Tensor

    def __init__(
        self, kernel: Any, points: Tensor | None, weights: Tensor, shift: Tensor, precision: torch.dtype | None = None
    ):
        super().__init__()
        #: precision of the codes where it is not that of the numbers
        self.precision = None if precision == weights.dtype else precision
        self.kernel = kernel
        #: fields of an explicit kernel that are tensors or modules, of which this module has its own
        self.own: list[str] = []
        self.register_buffer("weights", weights.detach().clone())
        self.register_buffer("shift", shift.detach().clone())
        if kernel is None:
            return
        if kernel.is_pairwise:
            assert points is not None
            origin = points.mean(dim=0) if kernel.is_isotropic else torch.zeros_like(points[0])
            self.register_buffer("origin", origin)
            self.register_buffer("right", kernel.factors(points - origin)[1].T.contiguous())
            return
        for name in (field.name for field in fields(kernel)) if is_dataclass(kernel) else ():
            value = getattr(kernel, name)
            if isinstance(value, torch.nn.Module):
                self.add_module(f"kernel_{name}", copy.deepcopy(value))
            elif isinstance(value, Tensor):
                self.register_buffer(f"kernel_{name}", value.detach().clone())
            else:
                continue
            self.own.append(name)

    def forward(self, x: Tensor) -> Tensor:
        """Return the codes of the rows of x: samples or, without a kernel, kernel values with the training samples."""
        codes = self._codes(x.to(self.weights.dtype))
        return codes if self.precision is None else codes.to(self.precision)

    def _codes(self, x: Tensor) -> Tensor:
        kernel, weights, shift = self.kernel, self.weights, self.shift
        if kernel is None:
            return x @ weights - shift
        if kernel.is_pairwise:
            exponent = kernel.factors(x - self.origin)[0] @ self.right
            seen = kernel.jet(exponent.clamp(max=0) if kernel.is_isotropic else exponent, 0)[0]
        else:
            own = {name: getattr(self, f"kernel_{name}") for name in self.own}
            seen = (replace(kernel, **own) if own else kernel).features(x)
        return seen @ weights - shift
