"""The learned state of an imputer, in memory and in model files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import in_memory
from drkm.imputation.linear import LinearFill
from drkm.inference.eigencomponents import EigenComponents
from drkm.inference.preimage.residual import residual_of
from drkm.inference.subspace import Components
from drkm.kernels import Kernel, entries
from drkm.problem.shrinkage import Shrinkage
from drkm.validation import parts

#: maximum number of steps per row, and the change in the last one relative to the spread of a column
STEPS, TOL = 20, 1e-2
#: the ways to fill gaps: by denoising, or with the mean or median of the column
HOW = ("fill", "mean", "median")
#: number of rows that are filled together
ROWS = 1024


@dataclass(frozen=True)
class Member:
    """A set of weighted components and its share in the filled values."""

    kernel: Kernel
    shrink: Shrinkage
    weight: float

    @property
    def entry(self) -> dict[str, Any]:
        """Entry in the header of a file."""
        return {"kernel": self.kernel.entry, "shrink": self.shrink.parameter, "weight": self.weight}

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Member:
        """Rebuild a member from its entry, after a check."""
        kernel, shrink = entries.asked_kernel(entry["kernel"], ()), Shrinkage.of(entry["shrink"])
        if shrink is None or not (kernel.is_isotropic and isinstance(kernel.parameters["sigma2"], float)):
            raise ValueError(f"members: expected a kernel of distances with numbers, got {kernel.describe()}")
        return cls(kernel, shrink, entry["weight"])


#: fields in the header of a file
PLAIN: dict[str, parts.Part] = {
    "how": parts.choice(*HOW),
    "ridge": parts.nullable(parts.positive),
    "members": parts.several(
        parts.group({"kernel": parts.group({}, others=True), "weight": parts.number(0)}, others=True)
    ),
}


@dataclass(frozen=True)
class Filling:
    """A learned way to fill gaps.

    Attributes
    ----------
    offset, scale : arrays of shape (d,)
        Columns are standardised to (values - offset) / scale.
    linear : LinearFill, optional
        The first step; without it gaps start at `offset`.
    reference : array of shape (n, d), optional
        Filled, standardised samples, whose components the members use.
    members : tuple of Member
        Kernels whose weights, with that of `linear`, sum to 1.
    how : {"fill", "mean", "median"}
        The requested method.
    """

    offset: np.ndarray
    scale: np.ndarray
    linear: LinearFill | None = None
    reference: np.ndarray | None = None
    members: tuple[Member, ...] = ()
    how: str = "fill"

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Fill the gaps (NaN) of values; all other entries are unchanged, to the last digit."""
        gaps = np.isnan(values)
        if not gaps.any():
            return values
        filled = np.asarray(values, dtype=np.float64).copy()
        rows = gaps.any(axis=1)
        # Entries so far from all samples that their squares overflow say nothing about the rest of their row.
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._fill_standard((filled[rows] - self.offset) / self.scale) * self.scale + self.offset
        found = np.where(np.isfinite(found), found, self.offset)
        filled[gaps] = found[gaps[rows]]
        return filled

    def _fill_standard(self, X: np.ndarray) -> np.ndarray:
        first = self.start(X)
        blend = (1 - sum(member.weight for member in self.members)) * first
        for member in self.members:
            components = self._components[member.kernel].components(member.shrink)
            blend += member.weight * fill_gaps(components, first, np.isnan(X))
        return blend

    def describe(self) -> str:
        """Return a short description."""
        return "gaps filled" if self.how == "fill" else f"gaps filled by {self.how}s"

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the plain values to write."""
        arrays = {"offset": self.offset, "scale": self.scale, "reference": self.reference}
        if self.linear is not None:
            arrays |= {"mean": self.linear.mean, "covariance": self.linear.covariance}
        tensors = {name: torch.from_numpy(array).clone() for name, array in arrays.items() if array is not None}
        ridge = None if self.linear is None else self.linear.ridge
        return tensors, {"how": self.how, "ridge": ridge, "members": [member.entry for member in self.members]}

    @classmethod
    def from_parts(cls, tensors: dict[str, Tensor], plain: dict[str, Any], features: int) -> Filling:
        """Rebuild a filling for this many features from `parts`; invalid parts are refused."""
        parts.check(plain, PLAIN)
        shapes: dict[str, tuple[int, ...]] = {"offset": (features,), "scale": (features,)}
        if plain["ridge"] is not None:
            shapes |= {"mean": (features,), "covariance": (features, features)}
        if plain["members"]:
            rows = len(tensors["reference"]) if "reference" in tensors else 0
            shapes["reference"] = (rows, features)
        parts.check(tensors, {name: parts.tensor(*shape, dtype=torch.float64) for name, shape in shapes.items()})
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        if (arrays["scale"] == 0).any():
            raise ValueError("scale: expected numbers other than 0")
        linear = None
        if plain["ridge"] is not None:
            linear = LinearFill(arrays["mean"], arrays["covariance"], plain["ridge"])
        members = tuple(map(Member.from_entry, plain["members"]))
        return cls(arrays["offset"], arrays["scale"], linear, arrays.get("reference"), members, plain["how"])

    def start(self, X: np.ndarray) -> np.ndarray:
        """Return standardised rows with initial values in their gaps."""
        return np.nan_to_num(X) if self.linear is None else self.linear.fill(X)

    @cached_property
    def _components(self) -> dict[Kernel, EigenComponents]:
        X, kernels = torch.from_numpy(self.reference), {member.kernel for member in self.members}
        instead = "fill gaps with a smaller max_samples"
        return {kernel: EigenComponents(kernel, X, instead=instead) for kernel in kernels}


def fill_gaps(components: Components, X: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Denoise X and put the values into its gaps, repeatedly, until they hardly change.

    Each round takes one step of the fixed-point iteration of pre-images before the next projection. Known entries are
    restored after every step.
    """
    samples = in_memory(components.X)
    low, high = samples.amin(dim=0), samples.amax(dim=0)
    filled = torch.from_numpy(X).clone()
    for rows in torch.arange(len(X)).split(ROWS):
        filled[rows] = _moved(components, filled[rows], torch.from_numpy(gaps)[rows], low, high)
    return filled.numpy()


def _moved(components: Components, x: Tensor, gaps: Tensor, low: Tensor, high: Tensor) -> Tensor:
    target, active = residual_of(components), torch.arange(len(x))
    for _ in range(STEPS):
        now = x[active]
        coordinates = components.coordinates(components.kernel(now, in_memory(components.X)))
        found = target.evaluate(target.inside(now), coordinates)
        assert found.curvature is not None
        # Far from all samples, where the sum of weights is not positive, the step is meaningless.
        step = torch.where(found.curvature > 0, 1 / found.curvature, 0.0)[:, None] * found.gradient
        moved = torch.where(gaps[active], (now - step).clamp(low, high), now)
        x[active] = moved
        active = active[(moved - now).abs().amax(dim=1) > TOL]
        if not len(active):
            break
    return x
