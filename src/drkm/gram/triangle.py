"""Half of a Gram matrix: a symmetric matrix on a CPU of which the upper triangle alone is formed, held and read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from drkm.gram.base import Gram
from drkm.kernels import Explicit, Kernel, Pairwise
from drkm.machine import blas

#: rows and columns of a tile: its exponents become kernel values while they are in the processor's cache
TILE = {"cpu": (256, 1024), "cuda": (1 << 14, 1 << 14)}


class TriangleGram(Gram):
    """A symmetric matrix in memory, of which entries below the diagonal are neither read nor need be there.

    Memory that is never written to takes no room: half of K is held for the whole.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        On a CPU, in rows.
    """

    def __init__(self, K: Tensor):
        self.K = K
        self.n = len(K)

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        return torch.from_numpy(self.product(A.numpy()))

    def product(self, A: np.ndarray) -> np.ndarray:
        """Return KA for a vector or a block of them, as arrays."""
        return blas.symmetric_product(self.K.numpy(), A)

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.K.diagonal()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        columns = torch.arange(self.n)
        return torch.where(columns >= index[:, None], self.K[index], self.K[:, index].T)

    def whole(self) -> Tensor:
        """Return all of K, in the memory of the half."""
        step = TILE["cpu"][1]
        for begin in range(0, self.n, step):
            rows = slice(begin, min(begin + step, self.n))
            self.K[rows.stop :, rows] = self.K[rows, rows.stop :].T
            own = self.K[rows, rows]
            own.copy_(own.triu() + own.triu(1).T)
        return self.K


def triangle(kernel: Kernel, X: Tensor) -> TriangleGram:
    """Return the Gram matrix of the rows of X."""
    if isinstance(kernel, Explicit):
        phi = kernel.table(X)
        # numpy sees one matrix and its transpose, and computes half of the product.
        return TriangleGram(torch.from_numpy(phi.numpy() @ phi.numpy().T))
    if not isinstance(kernel, Pairwise):
        raise TypeError(f"kernel: {type(kernel).__name__} has no Gram matrix that can be formed by halves")
    K = X.new_empty(len(X), len(X))
    for rows, columns, values in value_tiles(kernel, X, X, upper=True):
        K[rows, columns] = values
    return TriangleGram(K)


def cross_product(kernel: Pairwise, x: Tensor, y: Tensor, A: Tensor) -> Tensor:
    """Return k(x, y)A, of which kernel values are formed and used in tiles."""
    out = A.new_zeros(len(x), A.shape[1])
    part = A.new_empty(min(len(x), TILE["cuda" if x.is_cuda else "cpu"][0]), A.shape[1])
    for rows, columns, values in value_tiles(kernel, x, y):
        out[rows] += blas.matmul(values, A[columns], part[: len(values)])
    return out


def value_tiles(
    kernel: Pairwise, x: Tensor, y: Tensor, *, upper: bool = False
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield tiles of k(x, y) with their rows and columns, in memory that the next one overwrites.

    With `upper`, those that reach above the diagonal, from it on.
    """
    origin = y.mean(dim=0) if kernel.is_isotropic else None
    right = kernel.factors(y if origin is None else y - origin)[1]
    height, width = TILE["cuda" if x.is_cuda else "cpu"]
    room = x.new_empty(min(height, len(x)) * min(width, len(y)))
    for top in range(0, len(x), height):
        rows = slice(top, min(top + height, len(x)))
        left = kernel.factors(x[rows] if origin is None else x[rows] - origin)[0]
        for begin in range(top if upper else 0, len(y), width):
            columns = slice(begin, min(begin + width, len(y)))
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            tile = room[: shape[0] * shape[1]].view(shape)
            yield rows, columns, kernel.values(blas.matmul(left, right[columns].T, tile))
