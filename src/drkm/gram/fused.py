"""The strategy for NVIDIA GPUs: K_1 is stored or recomputed on tensor cores (`drkm.gram.split`), and each deep layer
takes one pass of a Triton kernel.

Kernel values, KA, the row sums of W = f'(e) ∘ AAᵀ and its product with the points come from one sweep over all pairs,
which stores none of them (`drkm.gram._triton` has the kernels). Kernels that are not isotropic, and layers with more
components than a thread's registers can hold, are swept in torch.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
from functools import cached_property

import torch
from torch import Tensor

from drkm.arrays.forms import into_values
from drkm.files.rows import Rows, in_memory
from drkm.gram import split
from drkm.gram.base import Gram, MovingGram, Strategy, Subset, Sums, register
from drkm.gram.cost import Cost, Workload
from drkm.gram.dense import Dense, StoredPairs
from drkm.gram.split import SplitGram
from drkm.gram.sweep import SweptGram, blocks
from drkm.gram.tiled import Tiled
from drkm.kernels import Kernel, Pairwise
from drkm.machine import memory

log = logging.getLogger("drkm.gram")

#: registers available for a thread's rows, and the maximum number of rows per thread
REGISTERS, MOST_ROWS = 176, 2
#: warps per program, and samples that are prefetched before the first one is used
WARPS, UNROLL = 4, 4
#: a sum over all samples is split into chunks of at least this many samples, and into at most this many chunks
CHUNK, MOST_CHUNKS = 128, 32
#: columns of a block that one pass over K takes
COLUMNS = 16
#: tile sizes of a stored matrix, and the number of chunks in which its rows are summed
TILE_ROWS, TILE_COLUMNS, STORED_CHUNKS = 64, 64, 8
#: lowest compute capability with the tensor cores that the product with a stored matrix uses
LEAST_CAPABILITY = (8, 0)
#: share of the available memory that a fit with a stored K_1 may use
SHARE = 0.8


class FusedGram(MovingGram):
    """Gram matrix of an isotropic kernel at the rows of `points`, recomputed in one fused sweep at every product."""

    def __init__(self, kernel: Pairwise, points: Tensor):
        profile = kernel.profile
        assert profile is not None
        self.kernel = kernel
        self.points = points
        self.n = len(points)
        self._profile = profile
        self._scale = profile.stretch * math.sqrt(kernel.pull_scale)
        # Only differences matter, and points around 0 lose fewer digits when they are scaled.
        self._scaled = (points - points.mean(dim=0)) * self._scale

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

    @property
    def rough(self) -> Gram:
        """The operator on tensor cores, whose products are accurate to 1e-3."""
        halves = self._halves
        return self if halves is None else halves.rough

    def subset(self, index: Tensor) -> Subset | None:
        """Return the operator of some of the points, on tensor cores."""
        halves = self._halves
        return None if halves is None else halves.subset(index)

    @cached_property
    def _halves(self) -> SplitGram | None:
        return split.split_gram(self.kernel, self.points)

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ².

        K depends only on U/σ, so that widening the kernel is equivalent to shrinking the points: -⟨U, pull⟩.
        """
        return -float((self.points.double() * self.sums(A).pull.double()).sum())

    def _sweep(self, name: str, rows: int, t: int, width: int, *blocks: Tensor, **constants: float) -> Tensor:
        """Run a Triton kernel over all pairs and return its `width` sums, one row each."""
        from drkm.gram import _triton

        samples = torch.cat([self._scaled, *blocks], dim=1)
        block = rows * 32 * WARPS
        chunk = max(CHUNK, -(-self.n // MOST_CHUNKS))
        chunks = -(-self.n // chunk)
        out = samples.new_empty(chunks, width, self.n)
        getattr(_triton, name)[-(-self.n // block), chunks](
            *(samples.T.contiguous(), samples, out, self.n, chunk),
            S=self._scaled.shape[1],
            T=t,
            PROFILE=self._profile.name,
            BLOCK=block,
            UNROLL=UNROLL,
            num_warps=WARPS,
            **constants,
        )
        return out.sum(dim=0)

    def _unscaled(self, pull: Tensor) -> Tensor:
        """Convert sums of weights times scaled differences to the pull, one row per sample."""
        return pull.T * (self.kernel.pull_scale / self._scale)

    def _swept(self) -> SweptGram:
        return SweptGram(self.kernel, self.points)


class FusedStoredGram(StoredPairs):
    """A Gram matrix that `form` stores, whose products with a few columns run at memory bandwidth."""

    def matmul(self, A: Tensor) -> Tensor:
        """Return KA."""
        t = A.shape[1]
        if t > COLUMNS or self.K.dtype != torch.float32:
            return self.K @ A
        from drkm.gram import _triton

        stride = self.K.stride(0)
        block = A.new_zeros(stride, COLUMNS)
        block[: self.n, :t] = A
        chunk = -(-stride // (STORED_CHUNKS * TILE_COLUMNS)) * TILE_COLUMNS
        chunks = -(-stride // chunk)
        out = A.new_empty(chunks, self.n, COLUMNS)
        _triton.stored_product[-(-self.n // TILE_ROWS), chunks](
            *(self.K, stride, block, out, self.n, chunk),
            WIDTH=COLUMNS,
            ROWS=TILE_ROWS,
            COLUMNS=TILE_COLUMNS,
            num_warps=4,
            num_stages=3,
        )
        return out.sum(dim=0)[:, :t]


@register
class Fused(Dense):
    """Recompute K_1 on tensor cores or store it, whichever is faster, or tile it; sweep the deep layers in Triton.

    Without a GPU or without Triton it falls back to `Tiled`, and logs that.

    Parameters
    ----------
    first : Strategy, optional
        How the first layer is formed if it is not stored.
    """

    name = "fused"

    def __init__(self, first: Strategy | None = None) -> None:
        self.first = first

    @property
    def reads_tiles(self) -> bool:
        """Whether the strategy of the first layer reads tiles."""
        return self.first is not None and self.first.reads_tiles

    def serves(self, work: Workload) -> bool:
        """Whether a GPU and Triton are available."""
        return not why_not(work.device)

    def settle(self, work: Workload) -> Strategy:
        """Return itself if K_1 is worth storing and fits, else with another first layer; `Tiled` without Triton."""
        reason = why_not(work.device)
        if reason:
            log.warning("gram: fused %s, tiled is used instead", reason)
            return Tiled().settle(work)
        if self.first is not None:
            return self
        stored, recomputed = self, Fused(split.Split())
        candidates = [stored]
        if split.serves(work.kernels[0], work.dtype):
            candidates = [recomputed, stored] if split.recomputes(work) else [stored, recomputed]
        for candidate in candidates:
            if candidate.cost(work).bytes - work.resident <= SHARE * memory.available(work.device):
                return candidate
        return Fused(Tiled().settle(work))

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit: that of the first layer, and the sums of every chunk of a sweep."""
        first = super().cost(work) if self.first is None else self.first.cost(work)
        return first.plus(bytes=MOST_CHUNKS * work.n * (work.components + 1) * work.item)

    def describe(self) -> str:
        """Return the name, with how K_1 is kept."""
        return f"fused, K_1 {'stored' if self.first is None else self.first.describe()}"

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Return the operator of the samples: the stored Gram matrix unless `first` is given."""
        if self.first is not None:
            return self.first.fixed(kernel, points)
        return super().fixed(kernel, points)

    def fixed_pairs(self, kernel: Pairwise, points: Tensor | Rows) -> Gram:
        """Return the stored Gram matrix, formed in place."""
        X = in_memory(points)
        kind = StoredPairs if why_not(points.device) else FusedStoredGram
        return kind(form(kernel, X), kernel, X)

    def moving_pairs(self, kernel: Pairwise, points: Tensor) -> MovingGram:
        """Return the fused sweep if Triton supports the kernel."""
        if kernel.profile is None or why_not(points.device):
            return super().moving_pairs(kernel, points)
        return FusedGram(kernel, points)


def why_not(device: torch.device) -> str:
    """Return why Triton cannot be used on a device, or an empty string."""
    if importlib.util.find_spec("triton") is None:
        return "needs Triton, which is not installed"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return ""
    if device.type != "cuda" or torch.version.hip:
        return f"needs a CUDA device, got {device}"
    capability = torch.cuda.get_device_capability(device)
    if capability < LEAST_CAPABILITY:
        return "needs a GPU of compute capability {}.{}, got {}.{}".format(*LEAST_CAPABILITY, *capability)
    return ""


def form(kernel: Pairwise, points: Tensor) -> Tensor:
    """Return the Gram matrix, formed in place block by block, without a second matrix of its size.

    Its rows are padded with zeros to whole tiles.
    """
    n = len(points)
    left, right = kernel.factors(points - points.mean(dim=0) if kernel.is_isotropic else points)
    right = right.T
    padded = points.new_empty(n, -(-n // TILE_COLUMNS) * TILE_COLUMNS)
    padded[:, n:] = 0
    K = padded[:, :n]
    for rows in blocks(n, n, points):
        block = K[rows]
        torch.mm(left[rows], right, out=block)
        into_values(kernel, block)
    return K


def rows_per_thread(numbers: int, dtype: torch.dtype) -> int:
    """Return how many rows a thread can own if each needs that many numbers; 0 if not even one fits."""
    rows = REGISTERS // (numbers * (dtype.itemsize // 4))
    return min(MOST_ROWS, 1 << (rows.bit_length() - 1)) if rows else 0
