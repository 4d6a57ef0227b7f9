"""What an imputer has learned: numbers that fill gaps, in memory and in the file of a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.imputation.linear import LinearFill
from drkm.inference.eigencomponents import EigenComponents
from drkm.inference.preimage.residual import residual_of
from drkm.inference.subspace import Components
from drkm.kernels import Kernel
from drkm.problem.shrinkage import Shrinkage

#: steps of a row, and how far, of the spread of a column, the last one moves it
STEPS, TOL = 20, 1e-2
#: rows that are filled together
ROWS = 1024


@dataclass(frozen=True)
class Member:
    """A set of weighed components and its share in what is put into gaps."""

    kernel: Kernel
    shrink: Shrinkage
    weight: float


@dataclass(frozen=True)
class Filling:
    """How gaps are filled.

    Attributes
    ----------
    offset, scale : arrays of shape (d,)
        Columns are (values - offset) / scale for what follows.
    linear : LinearFill, optional
        What comes first; else gaps become `offset`.
    reference : array of shape (n, d), optional
        Filled samples, in those units, whose components the members are.
    members : tuple of Member
        Their weights and that of `linear` have the sum 1.
    """

    offset: np.ndarray
    scale: np.ndarray
    linear: LinearFill | None = None
    reference: np.ndarray | None = None
    members: tuple[Member, ...] = ()

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Return values with their gaps, which are NaN, filled; all others are as they were, to the last digit."""
        gaps = np.isnan(values)
        if not gaps.any():
            return values
        filled = np.asarray(values, dtype=np.float64).copy()
        rows = gaps.any(axis=1)
        found = self._fill_standard((filled[rows] - self.offset) / self.scale) * self.scale + self.offset
        filled[gaps] = found[gaps[rows]]
        return filled

    def _fill_standard(self, X: np.ndarray) -> np.ndarray:
        first = self.start(X)
        blend = (1 - sum(member.weight for member in self.members)) * first
        for member in self.members:
            components = self._components[member.kernel].components(member.shrink)
            blend += member.weight * fill_gaps(components, first, np.isnan(X))
        return blend

    def start(self, X: np.ndarray) -> np.ndarray:
        """Return scaled rows with the first values in their gaps."""
        return np.nan_to_num(X) if self.linear is None else self.linear.fill(X)

    @cached_property
    def _components(self) -> dict[Kernel, EigenComponents]:
        X = torch.from_numpy(self.reference)
        return {kernel: EigenComponents(kernel, X) for kernel in {member.kernel for member in self.members}}


def fill_gaps(components: Components, X: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Return X after cleaning it and putting the values into the gaps, until these move little.

    One step of the fixed-point iteration (equation (30) of the paper) is taken from each row before the next
    projection; entries that are known stay, so that the row that is cleaned always has them.
    """
    low, high = (torch.from_numpy(bound(components.X.numpy(), axis=0)) for bound in (np.min, np.max))
    filled = torch.from_numpy(X).clone()
    for rows in torch.arange(len(X)).split(ROWS):
        filled[rows] = _moved(components, filled[rows], torch.from_numpy(gaps)[rows], low, high)
    return filled.numpy()


def _moved(components: Components, x: Tensor, gaps: Tensor, low: Tensor, high: Tensor) -> Tensor:
    target, active = residual_of(components), torch.arange(len(x))
    for _ in range(STEPS):
        now = x[active]
        coordinates = components.coordinates(components.kernel(now, components.X))
        found = target.evaluate(target.inside(now), coordinates)
        assert found.curvature is not None
        # Where the weights have no positive sum, far from all samples, the step says nothing.
        step = torch.where(found.curvature > 0, 1 / found.curvature, 0.0)[:, None] * found.gradient
        moved = torch.where(gaps[active], (now - step).clamp(low, high), now)
        x[active] = moved
        active = active[(moved - now).abs().amax(dim=1) > TOL]
        if not len(active):
            break
    return x
