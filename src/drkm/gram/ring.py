"""Exact Gram matrices of samples that processes share: each process owns rows, and blocks of points circulate."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram.base import Gram
from drkm.gram.sweep import SweptGram, parameter_sum
from drkm.gram.tiled_gram import TiledGram, half_entries
from drkm.gram.tiles import KeptTiles, Strip, aligned_entries, form, multiply, tile_rows
from drkm.kernels import Pairwise
from drkm.machine.layout import slices
from drkm.machine.threads import ShareOut, workers


class RingGram(SweptGram):
    """This process's rows of the Gram matrix of a pairwise kernel at the points of all processes.

    For every product each process passes its points and its rows of the block to the next one, until every block has
    visited every process. A process holds its own points, a block that it uses, one that arrives and, on a GPU, the
    last one that it sent. With one process this is a plain sweep.
    """

    def _around(self, *blocks: Tensor) -> Iterator[tuple[slice, Tensor, tuple[Tensor, ...]]]:
        widths = [block.shape[1] for block in (self.points, *blocks)]
        for columns, passed in collectives.ring(torch.cat([self.points, *blocks], dim=1)):
            points, *others = (part.contiguous() for part in passed.split(widths, dim=1))
            yield columns, self.kernel.factors(points)[1].T.contiguous(), (points, *others)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ²."""
        own = torch.tensor([super().parameter_sum(A)], dtype=torch.float64)
        return float(collectives.total(own))


class Share(NamedTuple):
    """What this process does for another one: the kernel values between our rows and theirs."""

    #: how many places ahead the other process is
    ahead: int
    mine: slice
    theirs: slice
    #: all of their rows of the block that is multiplied, and their points, if they are needed
    block: Tensor
    points: Tensor | None


class RingRows(Gram):
    """This process's rows of the Gram matrix of points that do not move, whose values two processes need not both form.

    A process forms half of its own values, and those with the points of the half of the processes that are ahead of it
    in the ring. A tile serves both sides of a product: what it adds to the rows of another process is handed over. As
    many tiles as fit are kept from the first product on.

    Parameters
    ----------
    kernel : Pairwise
    points : Tensor of shape (rows, d)
        The samples of this process.
    keep : float
        Bytes of kernel values that this process may keep. The result does not depend on it.
    rows : int, optional
        Rows of a tile.
    """

    def __init__(self, kernel: Pairwise, points: Tensor, keep: float, rows: int | None = None):
        self.kernel, self.points, self.n = kernel, points, len(points)
        # Only differences matter to isotropic kernels, and points around 0 lose fewer digits.
        self._origin = collectives.mean(points) if kernel.is_isotropic else None
        self._rows = rows or tile_rows(points.device)
        item = points.element_size()
        own, shared = half_entries(self.n, self._rows, item), shared_entries(self.n, self._rows, item)
        self._own = TiledGram(kernel, points, keep, self._rows)
        self._tiles = KeptTiles(max(0.0, keep - own * item), shared)
        #: whether all tiles of all processes are kept, so that only the first product needs the points of others
        self._all_kept = not collectives.agreed((own + shared) * item > keep)
        self._is_filled = False

    def __getstate__(self) -> dict[str, Any]:
        # A copy forms its tiles again, for which it needs the points of others.
        return vars(self) | {"_is_filled": False}

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        A = A.contiguous()
        out = self._own.matmul(A)
        for share in self._shares(A):
            out += collectives.handed_over(self._add_share(share, A, out), share.ahead)
        self._is_filled = True
        return out

    def with_kernel(self, kernel: Any) -> RingRows | None:
        """Return the operator of another kernel at the same points, which reuses the memory of the tiles."""
        own = self._own.with_kernel(kernel)
        if own is None:
            return None
        other = copy.copy(self)
        self._is_filled = other._is_filled = False
        other.kernel, other._own, other._tiles = kernel, own, self._tiles.emptied()
        return other

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self._own.diagonal()

    @property
    def kept_bytes(self) -> int:
        """Bytes of the kept tiles."""
        return self._own.kept_bytes + self._tiles.nbytes

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return RingGram(self.kernel, self._centered(self.points)).rows(index)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by ∂e/∂log σ² = -e."""
        A = A.contiguous()
        own = self._own.parameter_sum(A)
        for share in self._shares(A, with_points=True):
            for lower in slices(share.theirs.stop, self._rows, share.theirs.start):
                for upper in slices(share.mine.stop, self._rows, share.mine.start):
                    left, right = self._factors(share, upper, lower)
                    own += 2 * parameter_sum(self.kernel, left, right.T.contiguous(), A[upper], share.block[lower])
        return float(collectives.total(torch.tensor([own], dtype=torch.float64)))

    def _centered(self, points: Tensor) -> Tensor:
        return points if self._origin is None else points - self._origin

    def _shares(self, A: Tensor, *, with_points: bool = False) -> Iterator[Share]:
        """Yield our share with each process ahead; points are needed as long as tiles are formed."""
        shares = shares_ahead(self.n)
        passed = [A, self.points] if with_points or not (self._all_kept and self._is_filled) else [A]
        rings = [collectives.ring(block, len(shares) + 1) for block in passed]
        for ahead, met in enumerate(zip(*rings, strict=True)):
            if ahead:
                block, *points = (rows for _, rows in met)
                yield Share(ahead, *shares[ahead - 1], block, points[0] if points else None)

    def _add_share(self, share: Share, A: Tensor, out: Tensor) -> Tensor:
        """Add the products of our rows with theirs to `out`, and return those of theirs with ours, to hand over."""
        mine, theirs = share.mine, share.theirs
        own, handed = Strip(A[mine].T.contiguous()), torch.zeros_like(share.block)
        with workers(A) as share_out:
            for lower in slices(theirs.stop, self._rows, theirs.start):
                other = Strip(share.block[lower].T.contiguous())
                for upper in slices(mine.stop, self._rows, mine.start):
                    tile = self._tile(share, upper, lower, share_out)
                    multiply(tile, own[slice(upper.start - mine.start, upper.stop - mine.start)], other, share_out)
                handed[lower] = other.product.T
        out[mine] += own.product.T
        return handed

    def _tile(self, share: Share, upper: slice, lower: slice, share_out: ShareOut) -> Tensor:
        """Return the kernel values of some of our rows and of theirs."""
        shape = (upper.stop - upper.start, lower.stop - lower.start)
        return self._tiles.at(
            (share.ahead, upper.start, lower.start),
            shape,
            share.block,
            lambda tile: form(self.kernel, *self._factors(share, upper, lower), tile, share_out),
        )

    def _factors(self, share: Share, upper: slice, lower: slice) -> tuple[Tensor, Tensor]:
        """Return the factors of some of our rows and of theirs: those of all are another two copies of the samples."""
        assert share.points is not None
        left = self.kernel.factors(self._centered(self.points[upper]))[0]
        return left, self.kernel.factors(self._centered(share.points[lower]))[1]


def shares_ahead(n: int) -> list[tuple[slice, slice]]:
    """Return the n rows of this process, and those of each process ahead, whose kernel values this process forms.

    Of an even number of processes, the one that is furthest ahead is so for both: each forms one half.
    """
    shards = collectives.current()
    if shards is None:
        return []
    shares, size = [], len(shards.counts)
    for ahead in range(1, size // 2 + 1):
        other = (shards.rank + ahead) % size
        mine, theirs = slice(0, n), slice(0, shards.counts[other])
        if 2 * ahead == size and shards.rank < other:
            theirs = slice(0, theirs.stop // 2)
        elif 2 * ahead == size:
            mine = slice(n // 2, n)
        shares.append((mine, theirs))
    return shares


def shared_entries(n: int, rows: int, item: int) -> int:
    """Return the entries of the tiles of this process's n points with those of the processes ahead."""
    entries = 0
    for mine, theirs in shares_ahead(n):
        sizes = [[part.stop - part.start for part in slices(some.stop, rows, some.start)] for some in (mine, theirs)]
        entries += sum(aligned_entries(own, other, item) for own in sizes[0] for other in sizes[1])
    return entries
