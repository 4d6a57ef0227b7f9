"""Leading eigenpairs of a Gram operator: dense, or by a restarted block Krylov method, depending on the size."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from drkm.arrays.lapack import leading_by_lapack
from drkm.distributed import collectives
from drkm.gram import Gram
from drkm.gram.cost import KRYLOV_BLOCKS
from drkm.problem import stiefel

#: below this many samples, or if a tenth of the spectrum is wanted, a dense eigensolver is the fastest
DENSE_BELOW, DENSE_SHARE = 200, 1 / 10
#: the same if eigenpairs are wanted to at least this accuracy, for up to so many samples
SHARP, SHARP_SHARE, SHARP_BELOW = 1e-6, 1 / 30, 2000
#: blocks of the Krylov basis before it is restarted
MAX_BLOCKS = 8
#: from this many samples on, the iteration begins with eigenvectors of a subset: one in COARSE_SHARE samples, at least
#: COARSE_LEAST
COARSE_ABOVE, COARSE_SHARE, COARSE_LEAST = 50_000, 50, 10_000
#: tolerance for these, which are only this close to the eigenvectors of all samples
COARSE_TOL = 1e-2
#: residuals are not iterated below this many roundings, and are relative to at least this eigenvalue
ROUNDINGS, LEAST_VALUE = 50, 1e-300
#: blocks more than in a start: copies that are centred, multiplied and turned
CENTRED_BLOCKS = 10
#: n×n matrices of float64 that are alive in a dense solver
MATRICES = {"cpu": 5, "cuda": 6}


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, their eigenvectors as columns, and the largest residual ‖Kv - ρv‖/ρ_1."""

    values: Tensor
    vectors: Tensor
    residual: float


def leading_eigenpairs(
    gram: Gram,
    count: int,
    *,
    like: Tensor,
    outside: Tensor | None = None,
    start: Tensor | None = None,
    tol: float = 1e-10,
    max_passes: int = 60,
    needed: int | None = None,
) -> Eigenpairs:
    """Return the `count` largest eigenpairs of K, or of PKP with P the projection away from `outside`.

    Parameters
    ----------
    gram : Gram
        The operator K of size n×n.
    count : int
        Number of eigenpairs.
    like : Tensor
        Any tensor with the dtype and device of the result.
    outside : Tensor of shape (n, q), optional
        Orthonormal columns to which the eigenvectors must be orthogonal.
    start : Tensor of shape (n, k), optional
        Start vectors, at least as many as are wanted; by default from a subset of samples, or random.
    tol : float
        Maximum residual relative to the first eigenvalue.
    max_passes : int
        Maximum number of products with K.
    needed : int, optional
        Number of eigenpairs that suffice if a dense solver finds them, where others would only help an iteration.
    """
    n = collectives.samples(gram.n)
    free = n - (0 if outside is None else outside.shape[1])
    if _is_dense(n, count, free, tol if start is None else math.inf):
        return _dense(gram, count if needed is None else min(needed, count), like, outside)
    if start is None:
        start = _start(gram, _start_width(count), like)
    return _block_krylov(gram, count, start, outside, tol, max_passes)


def workspace_bytes(n: int, count: int, tol: float, like: Tensor) -> int:
    """Return the bytes that so many eigenpairs need besides the operator, without a start."""
    if _is_dense(n, count, n, tol):
        return MATRICES["cuda" if like.is_cuda else "cpu"] * 8 * n**2
    return (KRYLOV_BLOCKS + CENTRED_BLOCKS) * _start_width(count) * n * like.dtype.itemsize


def least_residual(dtype: torch.dtype) -> float:
    """Return the residual at which the iteration ends whatever the tolerance."""
    return ROUNDINGS * torch.finfo(dtype).eps


def _is_dense(n: int, count: int, free: int, tol: float) -> bool:
    """Whether a dense solver is the fastest; `free` is the number of eigenvectors that there can be."""
    is_sharp = tol <= SHARP and n <= SHARP_BELOW
    return n <= DENSE_BELOW or count >= free * (SHARP_SHARE if is_sharp else DENSE_SHARE)


def _start_width(count: int) -> int:
    return count + max(5, count // 2)


def _dense(gram: Gram, count: int, like: Tensor, outside: Tensor | None) -> Eigenpairs:
    # The projected matrix has eigenvalue 0 in the directions of `outside`; pushing these below zero keeps them out of
    # the result even if K itself has no more than rounding left there.
    K = _whole(gram, like).double()
    if outside is not None:
        shift = torch.linalg.norm(K).item() + 1.0
        Q = collectives.gather(outside.double())
        KQ = K @ Q
        K = K - KQ @ Q.T - Q @ KQ.T + Q @ ((Q.T @ KQ) - shift * torch.eye(Q.shape[1], dtype=Q.dtype).to(Q)) @ Q.T
    K = stiefel.symmetric(K)
    values, vectors = torch.linalg.eigh(K) if K.is_cuda else map(torch.from_numpy, leading_by_lapack(K.numpy(), count))
    values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
    return Eigenpairs(values.to(like.dtype), collectives.own_rows(vectors).to(like.dtype), 0.0)


def _whole(gram: Gram, like: Tensor) -> Tensor:
    """Return the matrix itself."""
    if collectives.current() is None:
        return gram.rows(torch.arange(gram.n, device=like.device))
    return collectives.gather(gram.matmul(collectives.eye(gram.n, collectives.samples(gram.n), like=like)))


def _start(gram: Gram, width: int, like: Tensor) -> Tensor:
    """Return start vectors: eigenvectors of some samples extended to all of them, or random ones."""
    # A fixed generator: the result must not depend on other users of random numbers.
    generator = torch.Generator().manual_seed(0)
    if gram.n >= COARSE_ABOVE and collectives.current() is None:
        some = torch.randperm(gram.n, generator=generator)[: max(COARSE_LEAST, gram.n // COARSE_SHARE)]
        part = gram.subset(some.to(like.device))
        if part is not None:
            return part.extend(leading_eigenpairs(part.gram, width, like=like, tol=COARSE_TOL).vectors)
    return collectives.normal(gram.n, width, generator).to(like)


def _block_krylov(
    gram: Gram, count: int, start: Tensor, outside: Tensor | None, tol: float, max_passes: int
) -> Eigenpairs:
    """Return eigenpairs by Rayleigh-Ritz steps in a basis that grows by the defects of its Ritz vectors.

    If the operator has rough products, they are used for the defects, which contribute little to a Ritz vector, so
    that little accuracy is lost. The residual that ends the iteration is that of exact products.
    """
    width, rough, dtype = start.shape[1], gram.rough, start.dtype
    n = collectives.samples(gram.n)
    tol = max(tol, least_residual(dtype))
    block = _orthonormal(start, outside)
    passes = 0
    while True:
        # In blocks of one size: joined, they would be copied, and leave holes in the memory where they were.
        basis, images, projected = [block], [_apply(gram, block, outside)], None
        passes += 1
        while True:
            projected = _bordered(projected, images, basis[-1])
            # Only the upper triangle: it has the products with the older blocks, which may be the exact ones.
            values, rotation = torch.linalg.eigh(projected, UPLO="U")
            values, rotation = values.flip(0)[:width], rotation.flip(1)[:, :width].to(dtype)
            vectors = _combined(basis, rotation)
            defect = _combined(images, rotation).sub_(vectors * values.to(dtype))
            residual = stiefel.column_norms(defect[:, :count]).max().item() / max(values[0].item(), LEAST_VALUE)
            done = residual <= tol or passes >= max_passes or (len(basis) + 1) * width > n
            is_exact = rough is gram or len(basis) == 1
            if done and is_exact:
                return Eigenpairs(values[:count].to(dtype), vectors[:, :count].contiguous(), residual)
            if done or len(basis) >= MAX_BLOCKS:
                break
            # Free what is no longer needed: the memory of a fit, besides its samples, peaks here.
            del vectors
            # The defect of the Ritz vectors spans what the next Krylov block would add.
            basis.append(_orthonormal(defect, outside, *basis))
            del defect
            images.append(_apply(rough, basis[-1], outside))
            passes += 1
        block = _orthonormal(vectors, outside)


def _bordered(projected: Tensor | None, images: list[Tensor], last: Tensor) -> Tensor:
    """Return the upper triangle of BᵀKB with the columns of the last block of B, in float64; KB are the images."""
    columns = collectives.total(torch.cat([image.T @ last for image in images]).double())
    if projected is None:
        return columns
    below = projected.new_zeros(last.shape[1], len(projected))
    return torch.cat([torch.cat([projected, below]), columns], dim=1)


def _combined(blocks: list[Tensor], weights: Tensor) -> Tensor:
    """Return the product of blocks side by side with the rows of weights."""
    first, *others = weights.split(blocks[0].shape[1])
    out = blocks[0] @ first
    for block, part in zip(blocks[1:], others, strict=True):
        out.addmm_(block, part)
    return out


def _apply(gram: Gram, block: Tensor, outside: Tensor | None) -> Tensor:
    image = gram.matmul(block)
    return image if outside is None else image - outside @ collectives.total(outside.T @ image)


def _orthonormal(block: Tensor, *against: Tensor | None) -> Tensor:
    """Return an orthonormal basis of the block's columns, orthogonal to the columns of others."""
    others = [other for other in against if other is not None]
    for _ in range(2):
        if others:
            parts = collectives.total(torch.cat([other.T @ block for other in others]))
            parts = parts.split([other.shape[1] for other in others])
            for other, part in zip(others, parts, strict=True):
                block = block - other @ part
        block = stiefel.qr(block)[0]
    return block
