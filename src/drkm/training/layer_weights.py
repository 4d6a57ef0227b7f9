"""The rule behind eta="auto": weights with which a deep layer does not dominate the layer below.

What holds a direction of layer l in place is its own eigenvalue, at least λ, the smallest that the layer keeps. Three
things that layer l + 1 gains by changing layer l must stay below it:

* Slope. Layer l + 1 pulls on the codes H_l by P = ½ ∂tr(AᵀK_{l+1}A)/∂H_l, for an orthonormal A. A sample whose code
  goes to zero loses at least λ/η_l ‖h‖² in its own layer, and layer l + 1, to which all samples at zero look alike,
  gains about ‖P‖/(‖H_l‖ η_{l+1}) ‖h‖². If the gain is not far below the loss, the codes of one sample after another
  vanish, and layer l concentrates on a few samples.
* Curvature. If A captures nearly all of K_{l+1}, as above a layer of one or two components, its trace is constant and P
  vanishes, but other codes would be better still. The curvature c_i is the weight of -h_i in row i of P,
  for the RBF Σ_j k(h_i, h_j)⟨a_i, a_j⟩/σ².
* Directions. H_l and H_{l+1} are orthogonal. If K_{l+1} is nearly constant, its first eigenvalue ρ is nearly n, and
  layer l + 1 takes that direction away from layer l.

    η_1 = 1,    η_{l+1} = max(‖P‖_F/(PULL · ‖H_l‖_F), mean(c)/CURVATURE, ρ/TAKEN)/λ · η_l, and at least η_l.

H_l and A are those of kernel PCA, layer by layer: A is the most that layer l + 1 could capture from any start. Kernel,
centring, number of samples and units cancel out of the ratios.
"""

from __future__ import annotations

import math

from drkm.distributed import collectives
from drkm.gram.base import Sums
from drkm.problem import stiefel
from drkm.problem.eigen import Eigenpairs, leading_eigenpairs
from drkm.problem.energy import LEADING_TOL, Energy

#: Ratio of a layer's pull to the weakest eigenvalue of the layer below. Layer 1 begins to concentrate on few samples
#: between 0.2 and 0.4; for flat spectra, as of noise, below 0.1. Far smaller values leave a fourth layer without
#: energy.
PULL = 0.05
#: The same for the mean curvature, with half of the ratio at which layer 1 begins to concentrate.
CURVATURE = 0.15
#: The same for the first eigenvalue of a layer. With one wide bandwidth for both layers, layer 1 kept 94 % or more of
#: kernel PCA's subspace in 15 of 16 fits to four tables, and between 50 and 91 % without this term in 15 of them.
TAKEN = 2.0
#: Only the order of magnitude matters: with two digits a weight is the same for every Gram operator and machine.
DIGITS = 2


def balanced(energy: Energy) -> tuple[float, ...]:
    """Return one η per layer such that no layer dominates the one below; the current weights do not matter."""
    eta = [1.0]
    if len(energy.sizes) == 1:
        return tuple(eta)
    first = energy.first_eigenpairs()
    values, codes = first.values[: energy.sizes[0]], first.vectors[:, : energy.sizes[0]].contiguous()
    for layer, size in enumerate(energy.sizes[1:], start=1):
        gram = energy.moving_at(layer, codes)
        pairs = leading_eigenpairs(gram, size, like=codes, tol=LEADING_TOL)
        # Directions whose eigenvalue kernel PCA cannot distinguish from zero have nothing to lose; NaN is kept.
        hold = float(values[~(values < LEADING_TOL * values[0])].min())
        gain = max(_gains(gram.sums(pairs.vectors), pairs, codes.shape[1]))
        eta.append(eta[-1] * max(1.0, collectives.agreed(_ratio(gain, hold))))
        values, codes = pairs.values, pairs.vectors
    return tuple(float(f"{weight:.{DIGITS}g}") for weight in eta)


def _gains(sums: Sums, pairs: Eigenpairs, size: int) -> list[float]:
    """Return what a layer gains by changing the one below of this size, each relative to what is allowed."""
    gains = [stiefel.norm(sums.pull) / math.sqrt(size) / PULL, float(pairs.values[0]) / TAKEN]
    if sums.curvature is not None:
        total, n = collectives.total(sums.curvature.sum()), collectives.samples(len(sums.pull))
        gains.append(float(total) / n / CURVATURE)
    return gains


def _ratio(gain: float, hold: float) -> float:
    """Return gain/hold; equal samples have no hold, and nothing to lose."""
    if not (math.isfinite(gain) and math.isfinite(hold)):
        raise FloatingPointError("the pull of a layer became NaN or inf")
    return gain / hold if hold > 0 else 0.0
