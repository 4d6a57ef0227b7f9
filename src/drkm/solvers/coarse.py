"""A coarse step: solve the problem with frozen kernels in a small subspace.

Layer-wise kernel PCA is close to a saddle point: it gives the directions that two layers compete for to the lower one,
and gradient methods need dozens of iterations to move them to the upper one. With the deep kernel matrices frozen and
their pull linearised, the energy is quadratic, and minimising it in a subspace of a few dozen directions costs very
little. The result is kept only if the true energy is lower.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from drkm.machine.layout import copied
from drkm.problem import stiefel
from drkm.problem.energy import Energy

MAX_SWEEPS = 100
SWEEP_TOL = 1e-4
PROXIMAL = 1e-3


def coarse_step(energy: Energy, H: Tensor, G: Tensor) -> Tensor | None:
    """Return the minimiser of the frozen model in the span of H and the leading eigenvectors of K_1.

    The model is -Σ 1/(2η_l) tr(C_lᵀ T_l C_l) + ⟨b, C⟩ for H = VC, with T_l = VᵀK_lV and b such that its gradient at the
    present point is the true one; it is minimised by C ← polar(-gradient), which never raises a concave energy.
    """
    V = stiefel.qr(torch.cat([H, energy.first_eigenpairs().vectors], dim=1))[0]
    if V.shape[1] >= energy.n:
        return None
    T = [
        stiefel.symmetric(stiefel.gram(V, energy.gram(layer, H).matmul(V))).cpu().numpy() / eta
        for layer, eta in enumerate(energy.eta)
    ]
    C = stiefel.gram(V, H).cpu().numpy()
    b = stiefel.gram(V, G).cpu().numpy()
    for block, T_l in zip(energy.slices, T, strict=True):
        b[:, block] += T_l @ C[:, block]
    C = _minimise(T, b, C, energy.slices)
    return stiefel.polar(V @ copied(C).to(V))


def _minimise(T: list[np.ndarray], b: np.ndarray, C: np.ndarray, slices: tuple[slice, ...]) -> np.ndarray:
    ascent = np.empty_like(C)
    # A small multiple of C itself keeps the polar factor well conditioned if a layer has no energy of its own.
    proximal = PROXIMAL * max(np.linalg.norm(T_l, 2) for T_l in T)
    for _ in range(MAX_SWEEPS):
        for block, T_l in zip(slices, T, strict=True):
            ascent[:, block] = T_l @ C[:, block]
        ascent += proximal * C - b
        values, vectors = np.linalg.eigh(ascent.T @ ascent)
        new = ascent @ ((vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))) @ vectors.T)
        change = np.linalg.norm(new - C)
        C = new
        if change <= SWEEP_TOL:
            break
    return C
