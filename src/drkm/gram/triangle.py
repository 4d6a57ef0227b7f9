"""Half of a Gram matrix: on a CPU, only the upper triangle of a symmetric matrix is formed, stored and read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm.files.rows import slices
from drkm.gram.base import Gram, remove_mean_
from drkm.gram.exponents import NARROW, Exponents, into_values, origin_of
from drkm.machine import blas, pages
from drkm.machine.elementwise import scaled_sum_
from drkm.machine.threads import workers

#: rows and columns of a tile, whose exponents become kernel values while they are in the processor's cache
TILE = (256, 1024)
#: up to this many points, one product of all of them is faster than one per tile, whatever their features
FEW = 1500
#: up to this many points the matrix is a single tile; both of its halves are formed, as the BLAS does for so few
ONE_TILE = min(724, blas.WHOLE)
#: rows that are copied at a time, so that the copy takes next to no memory
STRIP = 64
#: the exponents of a tile, given its rows and columns
Tiles = Callable[[slice, slice], Tensor]


class TriangleGram(Gram):
    """A symmetric matrix in memory whose entries below the diagonal are never read.

    The system provides memory only when it is written to, so that a large matrix takes little more than its half.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        On a CPU, in rows.
    energy : float, optional
        ‖K‖_F², the sum of the squares of all eigenvalues, where it is known.
    """

    def __init__(self, K: Tensor, energy: float | None = None):
        self.K = K
        self.n = len(K)
        self.energy = energy

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        # A product with a vector takes a fifth of the time of one with a matrix of one column.
        block = A[:, 0] if A.shape[1] == 1 else A
        return torch.from_numpy(blas.symmetric_product(self.K.numpy(), block.numpy())).view_as(A)

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.K.diagonal()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        columns = torch.arange(self.n)
        return torch.where(columns >= index[:, None], self.K[index], self.K[:, index].T)

    def whole(self) -> Tensor:
        """Copy the upper triangle to the lower one and return K."""
        return mirrored_(self.K)


def mirrored_(K: Tensor) -> Tensor:
    """Copy the upper triangle of a matrix to the lower one, in place."""
    for rows in slices(len(K), STRIP):
        K[rows.stop :, rows] = K[rows, rows.stop :].T
        own = K[rows, rows]
        own.copy_(own.triu() + own.triu(1).T)
    return K


def triangle_of_features(phi: Tensor) -> TriangleGram:
    """Return the Gram matrix of centred features; they are centred in place.

    Inner products of features far from zero would lose the digits in which they differ.
    """
    K = pages.upper_triangle(len(phi), phi.dtype)
    blas.upper_square(remove_mean_(phi), K)
    return TriangleGram(K)


def triangle(kernel: Any, X: Tensor) -> TriangleGram:
    """Return the Gram matrix of the rows of X."""
    if not kernel.is_pairwise:
        raise TypeError(f"kernel: {type(kernel).__name__} has no Gram matrix that can be formed by halves")
    K = pages.upper_triangle(len(X), X.dtype)
    is_square = kernel.is_isotropic and (len(X) <= FEW or X.shape[1] > NARROW)
    exponents = _of_square(kernel, X, K) if is_square else _of_products(kernel, X, K)
    is_tile = len(X) <= ONE_TILE
    energies: list[float] = []

    def form(rows: slice) -> None:
        for columns in slices(len(X), TILE[1], rows.start):
            tile = into_values(kernel, exponents(rows, columns))
            energies.append(_squares(tile) if is_tile else _energy(tile, columns.start == rows.start))

    with workers(X.device) as share_out:
        share_out(form, slices(len(X), len(X) if is_tile else TILE[0]))
    return TriangleGram(K, _sum(energies))


def _sum(energies: Sequence[float]) -> float:
    """Return the sum of positive numbers, exactly, so that the order in which threads finish does not matter."""
    try:
        return math.fsum(energies)
    except OverflowError:
        return math.inf


def _energy(tile: Tensor, at_diagonal: bool) -> float:
    """Return the part of ‖K‖_F² in a tile and its mirror image; at the diagonal only the upper part counts."""
    if not at_diagonal:
        return 2 * _squares(tile)
    parts = slices(len(tile), STRIP)
    upper = sum(_squares(tile[rows, rows].triu()) + _squares(tile[rows, rows.stop :]) for rows in parts)
    return 2 * upper - _squares(tile.diagonal()[None])


def _squares(part: Tensor) -> float:
    """Return the sum of squared entries; einsum does not copy them."""
    return float(np.einsum("ij,ij->", part.numpy(), part.numpy()))


def _of_square(kernel: Any, X: Tensor, K: Tensor) -> Tiles:
    """Return the exponents of tiles of K, from one product of all points with themselves."""
    origin, scale = origin_of(kernel, X), kernel.pull_scale
    blas.upper_square(X if origin is None else X - origin, K)
    # The squared norms are taken from the diagonal, so that the exponent of a point with itself is exactly 0.
    added = K.diagonal() * (-0.5 * scale)
    return lambda rows, columns: scaled_sum_(K[rows, columns], scale, added[columns], added[rows], rounded=True)


def _of_products(kernel: Any, X: Tensor, K: Tensor) -> Tiles:
    """Return the exponents of tiles of K, with one product per tile."""
    exponents = Exponents(kernel, X, wide=False)
    own = exponents.side(X)
    return lambda rows, columns: exponents.write(own[rows], columns, K[rows, columns])
