"""Learning kernels by minimising the energy, in alternation with the codes.

The energy rewards any kernel that makes points look more alike, so the problem is ill-posed: the layer that contains
the constant vector drives σ² → ∞. The paper does it nevertheless, so bandwidths are bounded here and feature maps
normalised. Selecting them on held-out data is the sound alternative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from drkm.files.rows import in_memory
from drkm.kernels import Kernel
from drkm.problem.energy import Energy

#: A learned σ² stays within this factor of its initial value.
RANGE = 1e4


def learnable_layers(energy: Energy) -> list[int]:
    """Return the layers (counted from 0) whose kernels have a bandwidth."""
    return [layer for layer, kernel in enumerate(energy.kernels) if kernel.has_bandwidth]


def trainable_layers(energy: Energy) -> list[int]:
    """Return the layers with trainable feature maps."""
    return [layer for layer, k in enumerate(energy.kernels) if k.trainable]


def improve_bandwidths(energy: Energy, H: Tensor, begin: dict[int, float]) -> float:
    """Minimise J over log σ² of every layer at fixed codes; return the largest change of a logarithm."""
    from scipy.optimize import minimize

    layers = sorted(begin)
    now = [math.log(energy.kernels[layer].bandwidth) for layer in layers]

    def objective(logs: list[float]) -> tuple[float, list[float]]:
        set_bandwidths(energy, {layer: math.exp(log) for layer, log in zip(layers, logs, strict=True)})
        return energy.value(H), [energy.bandwidth_gradient(H, layer) for layer in layers]

    limit = math.log(RANGE)
    bounds = [(math.log(begin[layer]) - limit, math.log(begin[layer]) + limit) for layer in layers]
    try:
        found = minimize(objective, now, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 20})
    except KeyboardInterrupt:
        # The last trial may be worse than the initial value.
        objective(now)
        raise
    objective(found.x)
    return max(abs(new - old) for new, old in zip(found.x, now, strict=True))


def layers_at_bound(begin: Sequence[Kernel], end: Sequence[Kernel]) -> list[int]:
    """Return the layers (counted from 1) whose σ² reached its bound, starting from `begin`."""
    nearly = 0.999 * math.log(RANGE)
    return [
        layer
        for layer, (old, new) in enumerate(zip(begin, end, strict=True), start=1)
        if old.has_bandwidth and abs(math.log(new.bandwidth / old.bandwidth)) >= nearly
    ]


def set_bandwidths(energy: Energy, sigma2: dict[int, float]) -> None:
    """Set σ² of some layers."""
    kernels = list(energy.kernels)
    for layer, value in sigma2.items():
        kernels[layer] = kernels[layer].with_parameters(sigma2=value)
    energy.set_kernels(kernels)


def improve_feature_maps(energy: Energy, H: Tensor, steps: int = 20) -> float:
    """Minimise J over the parameters of trainable feature maps at fixed codes; return the relative change of J."""
    blocks = energy.split(H)
    before = energy.value(H)
    for layer in trainable_layers(energy):
        kernel = energy.kernels[layer]
        U = blocks[layer - 1] if layer else in_memory(energy.X)
        U, A, eta = U.detach(), blocks[layer].detach(), energy.eta[layer]
        A = A - A.mean(dim=0) if energy.center else A
        optimiser = torch.optim.LBFGS(kernel.module_parameters(), max_iter=steps, line_search_fn="strong_wolfe")

        def closure(kernel=kernel, U=U, A=A, eta=eta, optimiser=optimiser) -> Tensor:
            optimiser.zero_grad()
            sums = kernel.table(U).T @ A
            # A few samples at a time: gradients of all samples at once would need most of the memory.
            for rows in kernel.blocks(U):
                (-1 / eta * ((kernel.features(U[rows]).T @ A[rows]) * sums).sum()).backward()
            return -0.5 / eta * sums.square().sum()

        optimiser.step(closure)
    if 0 in trainable_layers(energy):
        energy.form_first_gram()
    return abs(energy.value(H) - before) / max(abs(before), 1e-300)
