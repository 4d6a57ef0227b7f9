"""Half of a kernel matrix: only the upper triangle of a symmetric matrix is formed, stored and read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from drkm.arrays.exponents import NARROW, Exponents, origin_of
from drkm.machine import blas, pages
from drkm.machine.elementwise import scaled_sum_, tiles_in_place
from drkm.machine.layout import slices
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
Tiles = Callable[[slice, slice], np.ndarray]


class Half(NamedTuple):
    """A symmetric matrix in rows, whose entries below the diagonal are never read.

    The system provides memory only when it is written to, so that a large matrix takes little more than its half.

    K : n×n
    energy : ‖K‖_F², the sum of the squares of all eigenvalues; inf where it is not known
    """

    K: np.ndarray
    energy: float = math.inf

    def whole(self) -> np.ndarray:
        """Copy the upper triangle to the lower one and return K."""
        return mirrored_(self.K)


def mirrored_(K: np.ndarray) -> np.ndarray:
    """Copy the upper triangle of a matrix to the lower one, in place."""
    for rows in slices(len(K), STRIP):
        K[rows.stop :, rows] = K[rows, rows.stop :].T
        own = K[rows, rows]
        own[...] = np.triu(own) + np.triu(own, 1).T
    return K


def of_centered(phi: np.ndarray) -> Half:
    """Return the Gram matrix of features without their mean.

    Inner products of features far from zero would lose the digits in which they differ.
    """
    K = pages.upper_triangle(len(phi), phi.dtype)
    blas.upper_square(phi, K)
    return Half(K)


def of_points(kernel: Any, X: np.ndarray, *, several_threads: bool = True) -> Half:
    """Return the kernel matrix of the rows of X, for the form of a kernel."""
    K = pages.upper_triangle(len(X), X.dtype)
    is_square = kernel.is_isotropic and (len(X) <= FEW or X.shape[1] > NARROW)
    exponents = _of_square(kernel, X, K) if is_square else _of_products(kernel, X, K)
    is_tile = len(X) <= ONE_TILE
    energies: list[float] = []

    @tiles_in_place()
    def form(rows: slice) -> None:
        for columns in slices(len(X), TILE[1], rows.start):
            tile = kernel.values(exponents(rows, columns))
            energies.append(_squares(tile) if is_tile else _energy(tile, columns.start == rows.start))

    with workers(X, several_threads) as share_out:
        share_out(form, slices(len(X), len(X) if is_tile else TILE[0]))
    return Half(K, _sum(energies))


def _sum(energies: Sequence[float]) -> float:
    """Return the sum of positive numbers, exactly, so that the order in which threads finish does not matter."""
    try:
        return math.fsum(energies)
    except OverflowError:
        return math.inf


def _energy(tile: np.ndarray, at_diagonal: bool) -> float:
    """Return the part of ‖K‖_F² in a tile and its mirror image; at the diagonal only the upper part counts."""
    if not at_diagonal:
        return 2 * _squares(tile)
    parts = slices(len(tile), STRIP)
    upper = sum(_squares(np.triu(tile[rows, rows])) + _squares(tile[rows, rows.stop :]) for rows in parts)
    return 2 * upper - _squares(tile.diagonal()[None])


def _squares(part: np.ndarray) -> float:
    """Return the sum of squared entries; einsum does not copy them."""
    return float(np.einsum("ij,ij->", part, part))


def _of_square(kernel: Any, X: np.ndarray, K: np.ndarray) -> Tiles:
    """Return the exponents of tiles of K, from one product of all points with themselves."""
    origin, scale = origin_of(kernel, X), kernel.pull_scale
    blas.upper_square(X if origin is None else X - origin, K)
    # The squared norms are taken from the diagonal, so that the exponent of a point with itself is exactly 0.
    added = K.diagonal() * (-0.5 * scale)
    return lambda rows, columns: scaled_sum_(K[rows, columns], scale, added[columns], added[rows], rounded=True)


def _of_products(kernel: Any, X: np.ndarray, K: np.ndarray) -> Tiles:
    """Return the exponents of tiles of K, with one product per tile."""
    exponents = Exponents(kernel, X, wide=False)
    own = exponents.side(X)
    return lambda rows, columns: exponents.write(own[rows], columns, K[rows, columns])
