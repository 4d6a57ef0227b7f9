"""The first Gram matrix of samples that GPUs share: blocks of points circulate, and tensor cores recompute K_1.

Each process multiplies its own rows with every block that visits it, by the fused product of `drkm.gram.split`. That
product sums along rows only, so that the kernel values of two processes are computed in both.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram import fused, split
from drkm.gram.base import Gram
from drkm.gram.cost import Workload, gathered_bytes, start_width
from drkm.gram.ring import RingGram
from drkm.gram.split import SplitGram
from drkm.kernels import Kernel

log = logging.getLogger("drkm.gram")

#: blocks of points and columns during a product: our own, one that leaves, one in use and one that arrives
PASSED = 4
#: bytes per number while points are split into halves
SPLITTING = 12


class RingSplit(Gram):
    """This process's rows of the Gram matrix at the points of all processes, recomputed at every product.

    Parameters
    ----------
    own : SplitGram
        The block of this process's own points.
    """

    def __init__(self, own: SplitGram):
        self.kernel, self.points, self.n = own.kernel, own.points, own.n
        self._own = own

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        out, d = torch.zeros_like(A), self.points.shape[1]
        for step, (_, block) in enumerate(collectives.ring(torch.cat([self.points, A], dim=1))):
            # Without a name, so that the halves of a block are gone before those of the next one are formed.
            out += self._own.times(self._own.at(block[:, :d]) if step else self._own, block[:, d:])
        return out

    @property
    def rough(self) -> RingSplit:
        """The operator with products that are accurate to 1e-3, in half the time."""
        return RingSplit(self._own.rough)

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self._own.diagonal()

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return self._swept().rows(index)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², by one sweep over all pairs."""
        return self._swept().parameter_sum(A)

    def with_kernel(self, kernel: Kernel) -> RingSplit | None:
        """Return the operator of another kernel at the same points."""
        return ring_split(kernel, self.points)

    def _swept(self) -> RingGram:
        return RingGram(self.kernel, self._own.centered_points())


def ring_split(kernel: Kernel, points: Tensor, *, wanted: bool = True) -> RingSplit | None:
    """Return the operator, or None in all processes if one of them cannot compute it or no one wants it."""
    if not split.serves(kernel, points.dtype) or not collectives.agreed(wanted):
        return None
    own = SplitGram(kernel, points)
    if collectives.agreed(bool(fused.why_not(points.device)) or not own.fits_halves()):
        log.info("gram: 16-bit halves cannot hold the points of all processes, or a device cannot multiply them")
        return None
    return RingSplit(own)


def product_bytes(work: Workload) -> int:
    """Return the bytes of the halves of a process's points, of what a product needs, and of all points at the end."""
    most = collectives.most_rows(work.n)
    passed = PASSED * most * (work.d + start_width(work.components)) * work.item
    splitting = SPLITTING * min(most, split.SPLIT_ROWS) * work.d
    halves = split.halves_bytes(work.n, work.d) + split.halves_bytes(most, work.d)
    return passed + halves + splitting + gathered_bytes(work)
