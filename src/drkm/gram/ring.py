"""Exact Gram matrices of samples that processes share: each process owns rows, and blocks of points circulate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram.sweep import SweptGram, jets
from drkm.kernels import Pairwise


class RingGram(SweptGram):
    """This process's rows of the Gram matrix of a pairwise kernel at the points of all processes.

    For every product each process passes its points and its rows of the block to the next one, until every block has
    visited every process. A process holds three blocks of points and, if there is room, its rows of K. With one process
    this is a plain sweep.
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


class RingRows(RingGram):
    """The same for points that do not move: as many rows of K as fit are kept from the first product on.

    Parameters
    ----------
    kernel : Pairwise
    points : Tensor of shape (rows, d)
        The samples of this process.
    keep : float
        Bytes of kernel values that this process may keep. The result does not depend on it.
    """

    def __init__(self, kernel: Pairwise, points: Tensor, keep: float):
        # Only differences matter to isotropic kernels, and points around 0 lose fewer digits.
        super().__init__(kernel, points - collectives.mean(points) if kernel.is_isotropic else points)
        self._samples = points
        total = collectives.samples(self.n)
        self._kept = int(min(self.n, keep / (total * points.element_size())))
        #: kernel values of all points with those whose rows are kept, the transpose of these rows: BLAS multiplies a
        #: few columns by a wide matrix twice as fast from the left as from the right
        self._K: Tensor | None = None
        #: whether all rows are kept and filled, so that no process needs the points of others any more
        self._all_kept = not collectives.agreed(self._kept < self.n)

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        if self._K is None:
            self._fill()
        assert self._K is not None
        out = A.new_zeros(A.shape[1], self.n)
        if self._all_kept:
            for columns, B in collectives.ring(A.contiguous()):
                out.addmm_(B.T, self._K[columns])
            return out.T.contiguous()
        for columns, _, (points, B) in self._around(A.contiguous()):
            out[:, : self._kept].addmm_(B.T, self._K[columns])
            for rows, value in self._values(points, slice(self._kept, self.n)):
                out[:, self._kept :].addmm_(B[rows].T, value)
        return out.T.contiguous()

    def with_kernel(self, kernel: Any) -> RingRows | None:
        """Return the operator of another kernel at the same points, which reuses the memory of the rows."""
        if not kernel.is_pairwise:
            return None
        memory, self._K = self._K, None
        other = RingRows(kernel, self._samples, 0)
        other._kept, other._all_kept = self._kept, self._all_kept
        if memory is not None:
            other._K = memory
            other._fill()
        return other

    def _fill(self) -> None:
        """Compute the kept rows."""
        if self._K is None:
            self._K = self.points.new_empty(collectives.samples(self.n), self._kept)
        for columns, _, (points,) in self._around():
            for rows, value in self._values(points, slice(0, self._kept)):
                self._K[columns][rows] = value

    def _values(self, points: Tensor, own: slice) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of points with their kernel values with some of our own points."""
        if own.start < own.stop:
            for rows, (value,), _ in jets(self.kernel, self.kernel.factors(points)[0], self._right[:, own], 0):
                yield rows, value
