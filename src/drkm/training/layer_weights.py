"""Weights of layers that do not drown the layer below: the rule behind eta="auto".

Layer l + 1 pulls on the codes H_l by P = ½ ∂tr(AᵀK_{l+1}A)/∂H_l, for an orthonormal A. What holds a direction of
layer l in place is its own eigenvalue, at least λ, the smallest that the layer keeps. A sample whose code goes to
zero gives up at least λ/η_l ‖h‖² of its own layer, and layer l + 1, to which samples at zero are all alike, gains
about ‖P‖/(‖H_l‖ η_{l+1}) ‖h‖². Where the second is not far below the first, samples vanish one after the other and
layer l gathers on a few. The rule keeps their ratio at `PULL`:

    η_1 = 1,    η_{l+1} = ‖P‖_F / (PULL · ‖H_l‖_F · λ) · η_l, and at least η_l.

H_l and A are those of kernel PCA, layer by layer: A is the most that layer l + 1 could take, whatever the start.
Kernel, centring, number of samples and units cancel out of the ratio.
"""

from __future__ import annotations

import math

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.energy import LEADING_TOL, Energy

#: The pull of a layer over the weakest hold of the one below. Layer 1 begins to gather on few samples between 0.2 and
#: 0.4; of spectra that are flat, as of noise, below 0.1. Far smaller values leave a fourth layer without energy.
PULL = 0.05
#: A weight says an order of magnitude: with two digits it is the same for every Gram operator and on every machine.
DIGITS = 2


def balanced(energy: Energy) -> tuple[float, ...]:
    """Return one η per layer, such that no layer drowns the one below it; the weights of the energy play no role."""
    eta = [1.0]
    if len(energy.sizes) == 1:
        return tuple(eta)
    first = energy.first_eigenpairs()
    values, codes = first.values[: energy.sizes[0]], first.vectors[:, : energy.sizes[0]].contiguous()
    for layer, size in enumerate(energy.sizes[1:], start=1):
        gram = energy.moving_at(layer, codes)
        pairs = leading_eigenpairs(gram, size, like=codes, tol=LEADING_TOL)
        pull = stiefel.norm(gram.sums(pairs.vectors).pull) / math.sqrt(codes.shape[1])
        # Directions whose eigenvalue kernel PCA cannot tell from zero have nothing that could be drowned.
        hold = float(values[values >= LEADING_TOL * values[0]].min())
        eta.append(eta[-1] * max(1.0, collectives.agreed(_ratio(pull, hold) / PULL)))
        values, codes = pairs.values, pairs.vectors
    return tuple(float(f"{weight:.{DIGITS}g}") for weight in eta)


def _ratio(pull: float, hold: float) -> float:
    """Return their ratio; samples that are all alike have nothing to hold, and nothing that could be drowned."""
    if not (math.isfinite(pull) and math.isfinite(hold)):
        raise FloatingPointError("the pull of a layer became NaN or inf")
    return pull / hold if hold > 0 else 0.0
