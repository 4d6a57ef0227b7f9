"""The basis in which the codes of each layer are reported.

J does not change when the codes of a layer are rotated, as long as the kernel above it depends only on distances or dot
products. A fit therefore ends with a choice of axes: one orthogonal matrix R_l per layer, applied to codes, encoder and
multipliers alike. Deep kernels always use the solver's own basis. Below an explicit feature map, which is not
invariant, the model determines the axes and R_l = I.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.machine.layout import copied
from drkm.problem import stiefel
from drkm.problem.energy import Energy

NAMES = ("ritz", "varimax", "ica", None)


def products(energy: Energy, H: Tensor, first: Tensor) -> list[Tensor]:
    """Return T_l = H_lᵀK_lH_l of each layer in float64; `first` is K_1H_1."""
    return [
        stiefel.gram(A, first if layer == 0 else energy.moving(layer, H).matmul(A))
        for layer, A in enumerate(energy.split(H))
    ]


def rotations(energy: Energy, H: Tensor, T: Sequence[Tensor], axes: str | None) -> list[Tensor]:
    """Return one orthogonal s_l×s_l matrix per layer, in float64; `T` is that of `products`."""
    out = []
    for layer, block in enumerate(energy.slices):
        A = H[:, block].double()
        fixed = layer + 1 < len(energy.kernels) and not energy.kernels[layer + 1].rotation_invariant
        if axes is None or fixed:
            out.append(torch.eye(A.shape[1], dtype=A.dtype, device=A.device))
            continue
        own = stiefel.symmetric(T[layer])
        R = torch.linalg.eigh(own)[1].flip(1)
        if axes == "varimax":
            R = R @ varimax(energy.n**0.5 * A @ R)
        elif axes == "ica":
            R = R @ ica(energy.n**0.5 * A @ R)
        order = (R * (own @ R)).sum(dim=0).argsort(descending=True, stable=True)
        out.append(_fix_signs(A, R[:, order]))
    return out


def eigenvalue_estimates(T: Sequence[Tensor], rotation: Sequence[Tensor]) -> list[Tensor]:
    """Return the diagonal of R_lᵀT_lR_l = R_lᵀH_lᵀK_lH_lR_l of each layer; for one layer, the eigenvalues of K_1."""
    return [(R * (own @ R)).sum(dim=0) for own, R in zip(T, rotation, strict=True)]


def varimax(A: Tensor, max_iter: int = 500, tol: float = 1e-10) -> Tensor:
    """Return the rotation that makes the squared entries of the columns of AR vary most (Kaiser's criterion)."""
    R = torch.eye(A.shape[1], dtype=A.dtype, device=A.device)
    last = 0.0
    for _ in range(max_iter):
        B = A @ R
        left, values, right = torch.linalg.svd(stiefel.gram(A, B**3 - B * collectives.mean(B.square())))
        R = left @ right
        total = values.sum().item()
        if total <= last * (1 + tol):
            break
        last = total
    return R


def ica(A: Tensor, max_iter: int = 1000) -> Tensor:
    """Return the rotation to the least Gaussian axes: FastICA without centring or whitening, from the given axes.

    If neither of its two usual contrasts converges, no such axes can be distinguished, and the given ones stay.
    """
    from sklearn.decomposition import fastica
    from sklearn.exceptions import ConvergenceWarning

    A = collectives.gather(A)
    eye = torch.eye(A.shape[1], dtype=A.dtype, device=A.device)
    options = {"whiten": False, "max_iter": max_iter, "tol": 1e-8, "w_init": eye.cpu().numpy()}
    for contrast in ("logcosh", "cube") if A.shape[1] > 1 else ():
        with warnings.catch_warnings(action="error", category=ConvergenceWarning):
            try:
                W = fastica(A.cpu().numpy(), fun=contrast, **options)[1]
            except ConvergenceWarning:
                continue
        with collectives.shared(None):
            return stiefel.polar(copied(W.T).to(A))
    return eye


def _fix_signs(A: Tensor, R: Tensor) -> Tensor:
    """Return R with signs chosen so that the largest entry of every reported code is positive."""
    largest = _largest(collectives.gather(_largest(A @ R), most=1))[0]
    return R * torch.where(largest < 0, -1.0, 1.0).to(R)


def _largest(codes: Tensor) -> Tensor:
    """Return the entry of largest absolute value in every column, as one row."""
    return codes.gather(0, codes.abs().argmax(dim=0, keepdim=True))
