"""What a fit has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from drkm import axes as axes_of
from drkm import reduction, stiefel
from drkm.energy import Energy
from drkm.solvers import Result, Status

#: a layer with less of the energy than this is lost beside the others; its own kernel matrix must have more to give
FAINT = 1e-5


@dataclass(frozen=True)
class Trained:
    """A trained model, in the solver's own basis, with the rotations to the reported axes."""

    energy: Energy
    result: Result
    multipliers: Tensor
    rotation: list[Tensor]
    eigenvalues: list[Tensor]
    #: energies of all starts, None for those that were given up
    objectives: list[float | None]
    #: relative errors of approximate kernels, None for exact ones
    errors: list[float | None]
    #: trace of the Gram matrix of each layer
    traces: list[float]
    #: on how many samples the components of each layer rest
    supports: list[float]
    #: layers (counted from 1) whose learned σ² is at its bound
    at_bound: list[int] = field(default_factory=list)

    @property
    def faint(self) -> dict[int, float]:
        """Layers (counted from 1) whose share of the energy is so small that training hardly sees them."""
        sums = [float(values.sum()) for values in self.eigenvalues]
        energies = [own / eta for own, eta in zip(sums, self.energy.eta, strict=True)]
        shares = [part / sum(energies) if part else 0.0 for part in energies]
        layers = enumerate(zip(shares, sums, self.traces, strict=True), start=1)
        return {layer: share for layer, (share, own, trace) in layers if share < FAINT and own > FAINT * trace}

    @property
    def advice(self) -> str:
        """What to change if the fit did not converge."""
        if self.result.status in (Status.STALLED, Status.MAX_ITER):
            for layer, kernel in enumerate(self.energy.kernels[1:], start=2):
                if kernel.rough:
                    more = ", or raise max_iter" if self.result.status is Status.MAX_ITER else ""
                    return f"{type(kernel).__name__} in layer {layer} {kernel.rough} or a larger eta there{more}"
        return self.result.advice

    @property
    def message(self) -> str:
        """One sentence that says how the fit ended and what to change if it did not converge."""
        return f"{self.result.outcome}: {self.advice}" if self.advice else self.result.outcome


def describe(energy: Energy, result: Result, axes: str | None, objectives: Sequence[float | None]) -> Trained:
    """Return the trained model with its multipliers and axes."""
    H = result.H
    G = energy.evaluate(H).gradient
    rotation = axes_of.rotations(energy, H, axes)
    eigenvalues = axes_of.eigenvalue_estimates(energy, H, rotation)
    points = zip(energy.kernels, [energy.X, *energy.split(H)], strict=False)
    errors = [kernel.error(below) for kernel, below in points]
    multipliers, traces, supports = stiefel.multipliers(H, G), layer_traces(energy, H), layer_supports(energy, H)
    return Trained(energy, result, multipliers, rotation, eigenvalues, list(objectives), errors, traces, supports)


def layer_traces(energy: Energy, H: Tensor) -> list[float]:
    """Return the trace of the Gram matrix of each layer."""
    own = [energy.gram(layer, H).diagonal().double().sum() for layer in range(len(energy.sizes))]
    return reduction.total(torch.stack(own)).tolist()


def layer_supports(energy: Energy, H: Tensor) -> list[float]:
    """Return on how many samples the components of each layer rest: (Σ_i ‖h_i‖²)²/Σ_i ‖h_i‖⁴, whatever the axes.

    It is n where all samples have codes of one length, and m where m samples share the layer and the others have none.
    """
    squares = torch.stack([block.double().square().sum(dim=1) for block in energy.split(H)])
    lengths, fourth = reduction.total(torch.stack([squares.sum(dim=1), squares.square().sum(dim=1)])).tolist()
    return [total**2 / power if power > 0 else 0.0 for total, power in zip(lengths, fourth, strict=True)]
