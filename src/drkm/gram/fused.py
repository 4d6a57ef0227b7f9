"""The strategy for NVIDIA GPUs: K_1 stored once, everything of the deep layers in one pass of a Triton kernel.

Kernel values, KA, the row sums of W = f'(e) ∘ AAᵀ and its product with the points come from one sweep over all pairs,
of which nothing is stored (`drkm.gram._triton` has the kernels). Kernels that are not isotropic, and layers with more
components than registers hold, are swept in torch.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
from typing import NamedTuple

import torch
from torch import Tensor

from drkm.gram.base import Gram, MovingGram, Strategy, Sums
from drkm.gram.dense import Dense, StoredGram
from drkm.gram.sweep import BLOCK_ENTRIES, SweptGram
from drkm.kernels import RBF, Isotropic, Kernel, Laplacian, Matern, Pairwise

log = logging.getLogger("drkm")

#: registers that the numbers of a thread's rows may take, and the most rows of a thread
REGISTERS, MOST_ROWS = 176, 4
#: a sum over all samples is cut into chunks of at least this many, and into no more than this many chunks
CHUNK, MOST_CHUNKS = 128, 32
#: columns of a block that one pass over K takes
COLUMNS = 16
#: threads of a warp; a program is one warp, for there is nothing that warps could share
WARP = 32
#: a stored matrix is read in blocks of this many columns, by this many warps, that many rows in flight
STORED_BLOCK, STORED_WARPS, STORED_UNROLL = 512, 4, 4
#: rows of a stored matrix begin at multiples of this many numbers, so that they can be read four at a time
ALIGNMENT = 16
#: share of the free memory that K_1 may take
SHARE = 0.8


class Profile(NamedTuple):
    """How the Triton kernels know an isotropic kernel.

    With points multiplied by `stretch`/σ its exponentials are powers of 2.
    """

    name: str
    stretch: float


LOG2E = math.log2(math.e)


def profile_of(kernel: Kernel) -> Profile | None:
    """Return the profile of a kernel, or None for one that has no fused sweep."""
    match kernel:
        case RBF():
            return Profile("rbf", math.sqrt(0.5 * LOG2E))
        case Laplacian():
            return Profile("laplacian", LOG2E)
        case Matern(nu=1.5):
            return Profile("matern32", math.sqrt(3) * LOG2E)
        case Matern(nu=2.5):
            return Profile("matern52", math.sqrt(5) * LOG2E)
    return None


class FusedGram(MovingGram):
    """Gram matrix of an isotropic kernel at the rows of `points`, recomputed in one fused sweep at every product."""

    def __init__(self, kernel: Isotropic, points: Tensor):
        profile = profile_of(kernel)
        assert profile is not None
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self._profile = profile
        self._scale = profile.stretch * math.sqrt(kernel.pull_scale)
        self._scaled = points * self._scale

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        s = self._scaled.shape[1]
        parts = []
        for block in A.split(COLUMNS, dim=1):
            rows = rows_per_thread(2 * s + block.shape[1], A.dtype)
            if not rows:
                return self._swept().matmul(A)
            parts.append(self._sweep("sweep_product", rows, block.shape[1], block.shape[1], block))
        return torch.cat(parts).T.contiguous()

    def diagonal(self) -> Tensor:
        """Return ones: f(0) = 1."""
        return self.kernel.diagonal(self.points)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of K."""
        return self._swept().rows(index)

    def sums(self, A: Tensor) -> Sums:
        """Return KA and the pull on the points."""
        s, t = self._scaled.shape[1], A.shape[1]
        rows = rows_per_thread(3 * s + 2 * t, A.dtype)
        if not rows:
            return self._swept().sums(A)
        found = self._sweep("sweep_sums", rows, t, s + t + 1, A)
        product, pull, total = found[:t], found[t:-1], found[-1]
        return Sums(product.T.contiguous(), self._unscaled(pull), total * self.kernel.pull_scale)

    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the derivatives of KA and of the pull along (dU, dA)."""
        s, t = self._scaled.shape[1], A.shape[1]
        rows = rows_per_thread(5 * s + 3 * t, A.dtype)
        if not rows:
            return self._swept().tangent(A, dU, dA)
        exponent = -1.0 / self._profile.stretch**2
        found = self._sweep("sweep_tangent", rows, t, s + t, A, dU * self._scale, dA, EXPONENT=exponent)
        return found[:t].T.contiguous(), self._unscaled(found[t:])

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ².

        K depends on U/σ alone, so that widening the kernel is shrinking the points: -⟨U, pull⟩.
        """
        return -float((self.points.double() * self.sums(A).pull.double()).sum())

    def _sweep(self, name: str, rows: int, t: int, width: int, *blocks: Tensor, **constants: float) -> Tensor:
        """Run a kernel over all pairs and return its `width` sums, one row each."""
        from drkm.gram import _triton

        samples = torch.cat([self._scaled, *blocks], dim=1)
        grid, chunk, out = _partition(samples, self.n, rows * WARP, width)
        getattr(_triton, name)[grid](
            *(samples.T.contiguous(), samples, out, self.n, chunk),
            S=self._scaled.shape[1],
            T=t,
            PROFILE=self._profile.name,
            BLOCK=rows * WARP,
            num_warps=1,
            **constants,
        )
        return out.sum(dim=0)

    def _unscaled(self, pull: Tensor) -> Tensor:
        """Return sums of weights times scaled differences as the pull, one row a sample."""
        return pull.T * (self.kernel.pull_scale / self._scale)

    def _swept(self) -> SweptGram:
        return SweptGram(self.kernel, self.points)


class FusedStoredGram(StoredGram):
    """A symmetric Gram matrix held in memory, whose products with a few columns run at the speed of the memory."""

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        if A.shape[1] > COLUMNS or A.dtype != self.K.dtype:
            return self.K @ A
        from drkm.gram import _triton

        t = A.shape[1]
        grid, chunk, out = _partition(A, self.n, STORED_BLOCK, t)
        _triton.stored_product[grid](
            *(self.K, self.K.stride(0), A.contiguous(), out, self.n, chunk),
            T=t,
            BLOCK=STORED_BLOCK,
            UNROLL=STORED_UNROLL,
            num_warps=STORED_WARPS,
        )
        return out.sum(dim=0).T.contiguous()


class Fused(Strategy):
    """Store K_1 where it fits, sweep the deep layers in Triton; sweep in torch without a GPU or without Triton."""

    name = "fused"

    def __init__(self) -> None:
        self._told = False

    def fixed(self, kernel: Kernel, points: Tensor) -> Gram:
        """Return the Gram matrix of the samples: stored if it fits, else recomputed at every product."""
        if not isinstance(kernel, Pairwise):
            return Dense().fixed(kernel, points)
        if not fits(points):
            # Distances do not depend on the origin, but the digits of a sweep do.
            return SweptGram(kernel, points - points.mean(dim=0) if kernel.is_isotropic else points)
        K = form(kernel, points)
        return FusedStoredGram(K) if self._can_fuse(points) else StoredGram(K)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        if isinstance(kernel, Isotropic) and profile_of(kernel) and self._can_fuse(points):
            return FusedGram(kernel, points)
        return Dense().moving(kernel, points)

    def _can_fuse(self, points: Tensor) -> bool:
        reason = why_not(points.device)
        if reason and not self._told:
            self._told = True
            log.warning("gram: fused %s, the sweeps run in torch", reason)
        return not reason


def why_not(device: torch.device) -> str:
    """Return why Triton cannot be used on a device, or an empty string."""
    if importlib.util.find_spec("triton") is None:
        return "needs Triton, which is not installed"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"needs a CUDA device, got {device}"
    return ""


def fits(points: Tensor) -> bool:
    """Whether the Gram matrix of the samples may be stored."""
    if not points.is_cuda:
        return True
    free, _ = torch.cuda.mem_get_info(points.device)
    cached = torch.cuda.memory_reserved(points.device) - torch.cuda.memory_allocated(points.device)
    return len(points) ** 2 * points.element_size() <= SHARE * (free + cached)


def form(kernel: Pairwise, points: Tensor) -> Tensor:
    """Return the Gram matrix, formed in place block by block: no second matrix of its size is ever there."""
    n = len(points)
    left, right = kernel.factors(points - points.mean(dim=0) if kernel.is_isotropic else points)
    right = right.T
    K = points.new_empty(n, -(-n // ALIGNMENT) * ALIGNMENT)[:, :n]
    height = max(16, BLOCK_ENTRIES["cuda" if points.is_cuda else "cpu"] // n)
    for begin in range(0, n, height):
        block = K[begin : begin + height]
        torch.mm(left[begin : begin + height], right, out=block)
        values = kernel.values(block)
        if values is not block:
            block.copy_(values)
    return K


def rows_per_thread(numbers: int, dtype: torch.dtype) -> int:
    """Return how many rows a thread can own when each takes that many numbers; 0 if not even one fits."""
    rows = REGISTERS // (numbers * (dtype.itemsize // 4))
    return min(MOST_ROWS, 1 << (rows.bit_length() - 1)) if rows else 0


def _partition(like: Tensor, n: int, block: int, width: int) -> tuple[tuple[int, int], int, Tensor]:
    """Return the grid of programs, the samples of a chunk and the buffer for the sums of every chunk."""
    chunk = max(CHUNK, -(-n // MOST_CHUNKS))
    chunks = -(-n // chunk)
    return (-(-n // block), chunks), chunk, like.new_empty(chunks, width, n)
