"""The Stiefel manifold St(n, S) of n×S matrices with orthonormal columns, with the Euclidean metric.

Small S×S matrices are kept in float64 whatever the precision of the tall ones, which keeps HᵀH = I to rounding in
float32 as well. Tall matrices may be distributed over processes by rows: every sum over rows here includes all
processes (`drkm.distributed.collectives`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.machine.elementwise import lengths

#: smallest over largest eigenvalue of YᵀY below which its inverse square root loses too many digits
ILL_CONDITIONED = 1e-6
#: the same ratio above which one pass achieves HᵀH = I to rounding; below it a second pass is needed
WELL_CONDITIONED = 0.1


def gram(A: Tensor, B: Tensor) -> Tensor:
    """Return AᵀB in float64."""
    return collectives.total((A.T @ B).double())


def inner(A: Tensor, B: Tensor) -> float:
    """Return ⟨A, B⟩."""
    product = torch.dot(A, B) if A.ndim == 1 else (A * B).sum()
    return float(collectives.total(product.double()))


def norm(A: Tensor) -> float:
    """Return ‖A‖_F."""
    return norms(A)[0]


def norms(*blocks: Tensor) -> list[float]:
    """Return ‖A‖_F of several blocks with one exchange between processes."""
    return collectives.root_sum_square(torch.stack([torch.linalg.vector_norm(A) for A in blocks])).tolist()


def column_norms(A: Tensor) -> Tensor:
    """Return the norm of every column."""
    return collectives.root_sum_square(lengths(A, dim=0))


def qr(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q with orthonormal columns and a triangular R with QR = Y.

    Processes that share Y factorise their own rows and then the stack of their triangular factors, which is as
    accurate as one factorisation of the whole.
    """
    Q, R = torch.linalg.qr(Y)
    if collectives.current() is None:
        return Q, R
    most = Y.shape[1]
    again, R = torch.linalg.qr(collectives.gather(R, most))
    return Q @ collectives.own_rows(again, most), R


def symmetric(M: Tensor) -> Tensor:
    """Return (M + Mᵀ)/2."""
    return (M + M.T).mul_(0.5)


def multipliers(H: Tensor, G: Tensor) -> Tensor:
    """Return Λ = sym(HᵀG), the Lagrange multipliers of the constraint HᵀH = I of equation (21) of the paper.

    A stationary point is one with G = HΛ, where G = ∂J/∂H.
    """
    return symmetric(gram(H, G))


def projection(H: Tensor, Z: Tensor) -> Tensor:
    """Return Z - H sym(HᵀZ), the tangent vector at H that is nearest to Z."""
    return Z - H @ multipliers(H, Z).to(Z.dtype)


def polar(Y: Tensor) -> Tensor:
    """Return Y(YᵀY)^(-1/2), the nearest matrix with orthonormal columns.

    It is computed from the eigenvectors of the S×S Gram matrix, which squares the condition number of Y; nearly
    dependent columns use a slower QR factorisation and a small singular value decomposition.
    """
    values, vectors = torch.linalg.eigh(gram(Y, Y))
    if values[0] <= ILL_CONDITIONED * values[-1]:
        Q, R = qr(Y.double())
        left, _, right = torch.linalg.svd(R)
        return (Q @ (left @ right)).to(Y.dtype)
    H = Y @ ((vectors * values.rsqrt()) @ vectors.T).to(Y.dtype)
    return H if values[0] > WELL_CONDITIONED * values[-1] else polar(H)


def retraction(H: Tensor, Z: Tensor) -> Tensor:
    """Return the point reached from H along the tangent vector Z: polar(H + Z), correct to second order."""
    return polar(H + Z)


def hessian(H: Tensor, Lambda: Tensor, Z: Tensor, euclidean: Tensor) -> Tensor:
    """Return the Riemannian Hessian along the tangent Z, the projection of D²J[Z] - ZΛ, with the multipliers Λ.

    The second term is the curvature of the manifold (its Weingarten map).
    """
    return projection(H, euclidean - Z @ Lambda.to(Z.dtype))


def defect(H: Tensor) -> Tensor:
    """Return HᵀH - I in float64."""
    M = gram(H, H)
    M.diagonal().sub_(1.0)
    return M


def feasibility(H: Tensor) -> float:
    """Return ‖HᵀH - I‖_F."""
    return float(defect(H).norm())


def stationarity(H: Tensor, G: Tensor) -> float:
    """Return ‖G - H sym(HᵀG)‖_F / ‖G‖_F, which is 0 where no tangent direction lowers the energy."""
    return relative(projection(H, G), G)


def relative(R: Tensor, G: Tensor) -> float:
    """Return ‖R‖/‖G‖, 0 if both vanish, and NaN if ‖G‖ cannot be held, which certifies nothing."""
    tangent, whole = norms(R, G)
    # Squares of small entries underflow.
    if not math.isfinite(whole) or (whole == 0 and collectives.agreed(bool(G.any()))):
        return math.nan
    return tangent / whole if whole > 0 else 0.0
