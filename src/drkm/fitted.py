"""The record of a fitted model: the result of a fit, without the optimisation problem that led to it.

Codes of new points, pre-images, files, pickles, plots and summaries are computed from this record. It holds numbers and
samples, but no Gram matrix: Gram operators are formed from it when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.gram import Cost, Strategy
from drkm.gram.features import CodedFeatures
from drkm.kernels import Kernel
from drkm.machine.layout import copied
from drkm.problem.energy import layer_slices
from drkm.solvers import Result, Status
from drkm.solvers.result import ALIKE

#: codes that are farther from stationary than this, relative to their size, are reported as off; this is
#: surprising only if the gradient is smaller by this factor
OFF, EXPECTED = 0.1, 1e3
#: a layer with a smaller share of the energy is hardly trained; reported only if its share of the trace is larger
FAINT = 1e-5
#: largest n·m², for m landmarks, at which their factor and features are formed again instead of stored: it takes about
#: a second
FORMED_AGAIN = 1e10
#: files and pickles hold one history entry per this many numbers of samples and codes, so that the history takes a
#: twentieth of their bytes, and at least this many entries
PER_ENTRY, FEW_ENTRIES = 100, 40
#: attributes whose tensors pickles hold as arrays, which saves 200 bytes each
AS_ARRAYS = ("X", "result", "multipliers", "residual", "rotation", "eigenvalues")


@dataclass(frozen=True)
class FittedModel:
    """A fitted model in the solver's own basis, with the rotations to the reported axes.

    Attributes
    ----------
    kernels : tuple of Kernel
        One per layer, with all parameters as numbers.
    X : Tensor or Rows, of shape (n, d)
        The samples of this process. If `features` replace them, only their shape, unless the samples are smaller.
    sizes : tuple of int
        Number of components s_l of each layer.
    eta, lam : tuple of float
        η_l and λ_l of each layer.
    center : bool
        Whether every layer is centred in its feature space.
    axes : {"ritz", "varimax", "ica", None}
    encoder : {"stationary", "projection"}
    strategy : Strategy
        How Gram matrices are formed, as given by the user.
    operator, cost : str, Cost
        Description of the strategy that the fit used, and its cost.
    n : int
        Number of samples of all processes.
    result : Result
        H with its certificate: objective, feasibility, stationarity, status, iterations and seconds.
    multipliers : Tensor of shape (S, S)
        Λ.
    residual : Tensor of shape (n, S)
        R = G - HΛ, the remaining Riemannian gradient, in float32 because it is small compared with G.
    code_error : float
        Distance of the codes from stationary ones that R implies, relative to their size.
    rotation : tuple of Tensor
        One orthogonal matrix per layer.
    eigenvalues : tuple of Tensor
        Diagonal of H_lᵀK_lH_l on the reported axes, one per layer.
    traces, supports : tuple of float
        Trace of the Gram matrix and effective sample size of each layer.
    errors : tuple of float or None
        Relative errors of approximate kernels, None for exact ones.
    objectives : tuple of float or None
        Energies of all starts, None for abandoned ones.
    at_bound : tuple of int
        Layers (counted from 1) whose learned σ² is at its bound.
    seconds : float
        Time of the whole fit: reading, kernels, all starts and axes. For a resumed fit, it includes the time that the
        solvers had spent before the interruption.
    row_means : Tensor of shape (n,), optional
        Means of the rows of K_1, with which new points are centred.
    features : CodedFeatures, optional
        Features in place of the samples, for a model that was saved without samples.
    own : slice, optional
        Rows that this process passed to `fit`, if it holds the samples of all processes.
    """

    kernels: tuple[Kernel, ...]
    X: Tensor | Rows
    sizes: tuple[int, ...]
    eta: tuple[float, ...]
    lam: tuple[float, ...]
    center: bool
    axes: str | None
    encoder: str
    strategy: Strategy
    operator: str
    cost: Cost
    n: int
    result: Result
    multipliers: Tensor
    residual: Tensor
    code_error: float
    rotation: tuple[Tensor, ...]
    eigenvalues: tuple[Tensor, ...]
    traces: tuple[float, ...]
    supports: tuple[float, ...]
    errors: tuple[float | None, ...]
    objectives: tuple[float | None, ...]
    at_bound: tuple[int, ...] = ()
    seconds: float = 0.0
    row_means: Tensor | None = None
    features: CodedFeatures | None = None
    own: slice | None = None

    @property
    def H(self) -> Tensor:
        """Codes of the samples of this process in the solver's own basis, n×S."""
        return self.result.H

    @property
    def multipliers_on_axes(self) -> Tensor:
        """Λ on the reported axes."""
        rotation = torch.block_diag(*self.rotation)
        return rotation.T @ self.multipliers @ rotation

    @property
    def slices(self) -> tuple[slice, ...]:
        """Columns of each layer."""
        return layer_slices(self.sizes)

    @property
    def is_shared(self) -> bool:
        """Whether other processes hold some of the samples."""
        return len(self.X) < self.n

    @property
    def is_of_a_group(self) -> bool:
        """Whether several processes hold this model, each with all or some of the samples."""
        return self.is_shared or self.own is not None

    @property
    def landmarks(self) -> Tensor | None:
        """Landmarks of the first layer, if it has Nyström features."""
        return getattr(self.kernels[0], "landmarks", None)

    @property
    def landmarks_are_samples(self) -> bool:
        """Whether the landmarks of the first layer are all samples, in the same order."""
        return self.landmarks is not None and len(self.landmarks) == self.n and not self.is_shared

    @property
    def is_quickly_formed(self) -> bool:
        """Whether the features at landmarks can be recomputed from samples and landmarks in about a second."""
        return self.landmarks is not None and self.n * len(self.landmarks) ** 2 <= FORMED_AGAIN and not self.is_shared

    def as_stored(self) -> FittedModel:
        """Return the record that files and pickles hold: without features that can be recomputed, history thinned."""
        stored = replace(self, result=replace(self.result, history=self._some_history()))
        X = self.landmarks if self.landmarks_are_samples else self.X
        if self.features is None or not isinstance(X, Tensor) or not self.is_quickly_formed:
            return stored
        first, *deep = self.kernels
        return replace(stored, X=X, kernels=(first.with_parameters(), *deep), features=None)

    def _some_history(self) -> list[dict[str, float]]:
        """Return every k-th entry of the history and the last one, few enough to be small compared with the samples."""
        history, numbers = self.result.history, self.n * (self.X.shape[1] + sum(self.sizes))
        step = math.ceil(len(history) / max(FEW_ENTRIES, numbers // PER_ENTRY))
        return history if step <= 1 else [*history[:-1:step], history[-1]]

    def __getstate__(self) -> dict[str, Any]:
        stored = self.as_stored()
        arrays = {name: _converted(getattr(stored, name), Tensor, _array) for name in AS_ARRAYS}
        # Samples that are the landmarks too are one tensor, which a pickle holds once.
        return vars(stored) | arrays | ({"X": stored.X} if stored.X is stored.landmarks else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        made = {name: _converted(state[name], np.ndarray, copied) for name in AS_ARRAYS}
        vars(self).update(state | made)

    def layer_codes(self) -> list[Tensor]:
        """Return H_l of each layer."""
        return [self.H[:, block] for block in self.slices]

    @property
    def faint(self) -> dict[int, float]:
        """Layers (counted from 1) whose share of the energy is too small for training to improve them."""
        sums = [float(values.sum()) for values in self.eigenvalues]
        energies = [own / eta for own, eta in zip(sums, self.eta, strict=True)]
        shares = [part / sum(energies) if part else 0.0 for part in energies]
        layers = enumerate(zip(shares, sums, self.traces, strict=True), start=1)
        return {layer: share for layer, (share, own, trace) in layers if share < FAINT and own > FAINT * trace}

    @property
    def codes_are_off(self) -> str:
        """A warning if the fit reached its tolerance but its codes are far from stationary, else an empty string."""
        if not self.result.converged or self.code_error <= OFF:
            return ""
        return (
            f"the tolerance is reached, but codes of small energy are still off by {self.code_error:.0%}: lower tol, "
            + ALIKE
        )

    @property
    def surprising(self) -> bool:
        """Whether the codes are much farther from stationary than the tolerance suggests."""
        return self.code_error > EXPECTED * self.result.stationarity and bool(self.codes_are_off)

    @property
    def advice(self) -> str:
        """Advice on what to change, if the fit did not converge."""
        if self.result.status in (Status.STALLED, Status.MAX_ITER):
            for layer, kernel in enumerate(self.kernels[1:], start=2):
                if kernel.rough:
                    more = ", or raise max_iter" if self.result.status is Status.MAX_ITER else ""
                    return f"{type(kernel).__name__} in layer {layer} {kernel.rough} or a larger eta there{more}"
        return self.result.advice

    @property
    def message(self) -> str:
        """One sentence that says how the fit ended and what to change if it did not converge."""
        return f"{self.result.outcome}: {self.advice}" if self.advice else self.result.outcome


def _converted(value: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """Convert a value, each item of a tuple, or H of a result, if it is of this kind; return others unchanged."""
    if isinstance(value, tuple):
        return tuple(_converted(part, kind, convert) for part in value)
    if isinstance(value, Result):
        return replace(value, H=_converted(value.H, kind, convert))
    return convert(value) if isinstance(value, kind) else value


def _array(tensor: Tensor) -> np.ndarray | Tensor:
    return tensor.numpy() if tensor.device.type == "cpu" else tensor
