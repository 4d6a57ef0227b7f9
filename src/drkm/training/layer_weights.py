"""The rule behind eta="auto": weights with which a deep layer does not dominate the layer below.

Layer l + 1 pulls on the codes H_l by P = ½ ∂tr(AᵀK_{l+1}A)/∂H_l, for an orthonormal A. What holds a direction of layer
l in place is its own eigenvalue, at least λ, the smallest that the layer keeps. A sample whose code goes to zero loses
at least λ/η_l ‖h‖² in its own layer, and layer l + 1, to which all samples at zero look alike, gains about ‖P‖/(‖H_l‖
η_{l+1}) ‖h‖². If the gain is not far below the loss, the codes of one sample after another vanish and layer l
concentrates on a few samples. The rule keeps the ratio at `PULL`:

    η_1 = 1,    η_{l+1} = ‖P‖_F / (PULL · ‖H_l‖_F · λ) · η_l, and at least η_l.

H_l and A are those of kernel PCA, layer by layer: A is the most that layer l + 1 could capture from any start. Kernel,
centring, number of samples and units cancel out of the ratio.
"""

from __future__ import annotations

import math

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.energy import LEADING_TOL, Energy

#: Ratio of a layer's pull to the weakest eigenvalue of the layer below. Layer 1 begins to concentrate on few samples
#: between 0.2 and 0.4; for flat spectra, as of noise, below 0.1. Far smaller values leave a fourth layer without
#: energy.
PULL = 0.05
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
        pull = stiefel.norm(gram.sums(pairs.vectors).pull) / math.sqrt(codes.shape[1])
        # Directions whose eigenvalue kernel PCA cannot distinguish from zero have nothing to lose.
        hold = float(values[values >= LEADING_TOL * values[0]].min())
        eta.append(eta[-1] * max(1.0, collectives.agreed(_ratio(pull, hold) / PULL)))
        values, codes = pairs.values, pairs.vectors
    return tuple(float(f"{weight:.{DIGITS}g}") for weight in eta)


def _ratio(pull: float, hold: float) -> float:
    """Return pull/hold; equal samples have no hold, and nothing to lose."""
    if not (math.isfinite(pull) and math.isfinite(hold)):
        raise FloatingPointError("the pull of a layer became NaN or inf")
    return pull / hold if hold > 0 else 0.0
