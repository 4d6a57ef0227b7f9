"""Starting points of the training."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.problem import stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.energy import LEADING_TOL, Energy
from drkm.solvers.projected_gradient import ProjectedGradient

#: starts that are drawn at random
RANDOM = ("random", "orthogonal")
NAMES = ("kpca", *RANDOM)
#: lengths of the steps to further starts; which one ends lower depends on the bandwidths
NEAR, FAR = 0.5, 4.0
#: gradient steps from a far start lead to lower optima than quasi-Newton steps, and from the first start to another
#: optimum
DESCENT = 16


def kernel_pca(energy: Energy) -> Tensor:
    """Return layer-wise kernel PCA, each layer in the orthogonal complement of the ones below it.

    The paper's layer-wise start solves each layer alone. If a deep kernel matrix is nearly constant, its leading
    eigenvectors repeat those of the first layer and the stacked H loses rank, hence the complement. Signs are fixed,
    because features of deep layers depend on them.
    """
    H = torch.zeros(energy.rows, energy.n_components, dtype=energy.dtype, device=energy.device)
    H[:, energy.slices[0]] = _signed(energy.first_eigenpairs().vectors[:, : energy.sizes[0]])
    for layer, block in enumerate(energy.slices[1:], start=1):
        below = H[:, : block.start]
        pairs = leading_eigenpairs(energy.moving(layer, H), energy.sizes[layer], like=H, outside=below, tol=LEADING_TOL)
        H[:, block] = _signed(pairs.vectors)
    return stiefel.polar(H)


def random(energy: Energy, generator: torch.Generator) -> Tensor:
    """Return standard normal numbers, off the manifold, like the paper's random start."""
    draw = collectives.normal(energy.rows, energy.n_components, generator)
    return draw.to(dtype=energy.dtype, device=energy.device)


def orthogonal(energy: Energy, generator: torch.Generator) -> Tensor:
    """Return a point of the manifold drawn uniformly."""
    return stiefel.polar(random(energy, generator))


def further(energy: Energy, H: Tensor, length: float, generator: torch.Generator) -> Tensor:
    """Return a random point `NEAR` H or `FAR` from it, or (length 0) H itself; the last two after gradient steps."""
    if length > 0:
        invariant = all(kernel.rotation_invariant for kernel in energy.kernels[1:])
        H = perturbed(_signed(H) if invariant else H, generator, length)
    else:
        # The caller's array need not lie on the manifold.
        H = stiefel.polar(H)
    return H if length == NEAR else _descended(energy, H)


def _signed(H: Tensor) -> Tensor:
    """Return H with signs such that the cubes of each column have a positive sum; otherwise rounding decides them."""
    cubes = collectives.total(H.pow(3).sum(dim=0, dtype=torch.float64))
    return torch.where(cubes < 0, -H, H)


def _descended(energy: Energy, H: Tensor) -> Tensor:
    """Return H after some projected gradient steps."""
    solver = ProjectedGradient()
    state = solver.start(energy, H)
    for _ in range(DESCENT):
        state = solver.step(energy, state, tol=0.0)
    return state.H


def perturbed(H: Tensor, generator: torch.Generator, size: float) -> Tensor:
    """Return H after a random step of length `size` relative to ‖H‖, brought back to the manifold."""
    noise = collectives.normal(len(H), H.shape[1], generator).to(H)
    return stiefel.polar(H + (size / collectives.samples(len(H)) ** 0.5) * noise)


def given(energy: Energy, array: Tensor) -> Tensor:
    """Return the caller's array in the precision and on the device of the energy."""
    expected = (energy.rows, energy.n_components)
    if tuple(array.shape) != expected:
        raise ValueError(f"init: expected an array of shape {expected}, got {tuple(array.shape)}")
    if not torch.isfinite(array).all():
        raise ValueError("init: the array contains NaN or inf")
    return array.to(dtype=energy.dtype, device=energy.device)
