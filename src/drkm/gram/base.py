"""Base classes of Gram operators: products with a block of vectors, and the sums that the energy's gradient needs."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch
from torch import Tensor

from drkm.arrays import means
from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.gram.cost import Cost, Workload, common, pair_flops
from drkm.kernels import Kernel
from drkm.machine.elementwise import lengths
from drkm.validation.registry import Registry

if TYPE_CHECKING:
    from drkm.gram.features import CodedFeatures

#: rows that are checked for rounding at once: few enough not to need much memory
SPREAD_ROWS = 1 << 14


class Sums(NamedTuple):
    """The sums that one gradient of tr(AᵀK(U)A) needs.

    product : KA, half the gradient with respect to A
    pull : half the gradient with respect to U, row i is Σ_j ∂k(u_i, u_j)/∂u_i ⟨a_i, a_j⟩
    curvature : for isotropic kernels, the weight of -u_i itself in row i of `pull`; else None
    """

    product: Tensor
    pull: Tensor
    curvature: Tensor | None


class Subset(NamedTuple):
    """Some of the points of a Gram matrix.

    gram : the operator of this subset
    extend : the map A ↦ k(all points, subset) A
    """

    gram: Gram
    extend: Callable[[Tensor], Tensor]


class Gram(ABC):
    """The Gram matrix K of all points as an operator; it need not be stored.

    If processes share the points, blocks hold the rows of this process.
    """

    #: number of points of this process
    n: int
    #: whether it multiplies by two thin factors, which preserves the digits of features far from zero
    of_features = False

    @abstractmethod
    def matmul(self, A: Tensor) -> Tensor:
        """Return KA for an n×t block."""

    @abstractmethod
    def diagonal(self) -> Tensor:
        """Return the n diagonal entries."""

    @abstractmethod
    def rows(self, index: Tensor) -> Tensor:
        """Return the chosen rows of K."""

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative of tr(AᵀKA) with respect to log σ², for a kernel that has a bandwidth."""
        raise TypeError(f"gram: {type(self).__name__} does not know the bandwidth of its kernel")

    def with_kernel(self, kernel: Kernel) -> Gram | None:
        """Return the operator of another kernel at the same points in the memory of this one, or None if it cannot."""
        return None

    @property
    def rough(self) -> Gram:
        """The operator with cheaper products of about three digits; itself if there is none."""
        return self

    def subset(self, index: Tensor) -> Subset | None:
        """Return the operator of some of the points, or None if it would cost more than its share."""
        return None

    def keep_at_most(self, keep: float) -> None:  # noqa: B027 - most keep nothing that they could free
        """Free memory that is kept only for speed if it is more than `keep` bytes, and keep no more from now on."""

    def rounding(self, dtype: torch.dtype) -> float:
        """Return the length of what rounding adds to a product with a vector of length 1, if it is known, else 0."""
        return 0.0

    def centered(self) -> Gram:
        """Return the operator of the points centred in feature space; for points that do not move."""
        return Centered(self)

    def feature_sums(self, A: Tensor) -> Tensor | None:
        """Return ΦᵀA over all samples if features Φ are kept, else None."""
        return None

    def coded(self, H: Tensor) -> CodedFeatures | None:
        """Return reduced features that suffice for products with the codes H, or None if no features are kept."""
        return None


class MovingGram(Gram):
    """A Gram matrix whose points U move during training: the layers above the first."""

    @abstractmethod
    def sums(self, A: Tensor) -> Sums:
        """Return KA and the pull on the points in one sweep."""

    @abstractmethod
    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the directional derivatives of `product` and `pull` when (U, A) moves along (dU, dA)."""


class Strategy(ABC):
    """How Gram matrices are formed: the object behind the estimator's parameter `gram`.

    An object is asked in this order: `settle` for a workload, then `cost`, then `fixed` and `moving`.
    """

    #: its name in `gram="…"`
    name: str = ""
    #: whether processes share the samples, each with some rows in memory
    shares: bool = False
    #: whether pairwise kernels are exact
    is_exact: bool = False

    @property
    def hides_samples(self) -> bool:
        """Whether its landmarks are not samples, so that a file should hold no sample."""
        return False

    @property
    def reads_tiles(self) -> bool:
        """Whether `fixed` reads samples in tiles, so that they may stay in a file."""
        return False

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({settings})"

    def serves(self, work: Workload) -> bool:
        """Whether it can be used for these kernels on this device; "auto" skips it if not."""
        return True

    def settle(self, work: Workload) -> Strategy:
        """Return the strategy to use for a workload: itself, unless the size decides something."""
        return self

    def cost(self, work: Workload) -> Cost:
        """Return the cost of a fit; by default that of sweeping every layer at every gradient, without n×n matrices."""
        first = work.n**2 * (pair_flops(work.d) + 2.0 * work.sizes[0])
        return common(work).plus(flops=first, traffic=float(work.sample_bytes))

    def feature_count(self, work: Workload) -> int | None:
        """Return the number of features that replace the first Gram matrix; None if there are none."""
        kernel = work.kernels[0]
        return kernel.width(work.d) if kernel.is_explicit else None

    def deep_flops(self, work: Workload) -> float:
        """Return the operations of the deep layers for one gradient; by default those of sweeping them."""
        return common(work).flops

    @property
    def alone(self) -> Strategy:
        """The strategy of a single process that holds all samples."""
        return self

    def left(self, work: Workload, needed: int, what: str) -> float | None:
        """Return the bytes that a budget leaves for K_1 if a trained model needs `needed`; None without a budget."""
        return None

    def describe(self) -> str:
        """Return a short description."""
        return self.name or type(self).__name__

    def approximate(self, kernel: Kernel, points: Tensor | Rows, *, layer: int) -> Kernel:
        """Return the kernel of the model in a layer: the given one, or explicit features that replace it.

        `points` are the samples for layer 1 and any n×s matrix with orthonormal columns above it.
        """
        return kernel

    @abstractmethod
    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Return the operator of the first layer, whose points are the samples."""

    @abstractmethod
    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer at its present points."""

    def sharing(
        self, X: Tensor | Rows, settings: Callable[[], str], checkpoint: str | os.PathLike[str] | None
    ) -> AbstractContextManager[None]:
        """Return the context in which a fit to the rows of X runs; by default this process holds all samples.

        `settings` describes, as text, what must be equal in all processes that take part.
        """
        return nullcontext()

    def withdraw(self) -> None:  # noqa: B027
        """Tell processes that would share a fit with this one that it has no samples; by default there are none."""


Kind = TypeVar("Kind", bound=type[Strategy])

#: strategies by name
NAMES: Registry[type[Strategy]] = Registry("gram", "gram")


def register(kind: Kind) -> Kind:
    """Register a strategy class under its `name`, for `gram="…"` and for files; its parameters need defaults."""
    return NAMES.add_class(kind, Strategy)


class Centered(MovingGram):
    """CKC with C = I - 11ᵀ/n: the Gram matrix of points centred in feature space."""

    def __init__(self, gram: Gram):
        self.gram = gram
        self.n = gram.n
        self._mean_of_diagonal: Tensor | None = None

    def matmul(self, A: Tensor) -> Tensor:
        """Return CKCA."""
        A = center(A)
        # In place, because the blocks of a start need most of the memory.
        return self._drop_rounding_(remove_mean_(self.gram.matmul(A)), A)

    def diagonal(self) -> Tensor:
        """Return the diagonal of CKC."""
        mean = self._row_means()
        return self.gram.diagonal() - 2 * mean + collectives.mean(mean)

    def rows(self, index: Tensor) -> Tensor:
        """Return rows of CKC."""
        mean = self._row_means()
        rows = self.gram.rows(index) - mean[index, None] - mean + collectives.mean(mean)
        # Rows are differences of kernel values, even where products use features.
        is_rounding = lengths(rows, dim=1) <= self._entries_worth(rows.dtype) * self._scale
        return rows.masked_fill_(is_rounding[:, None], 0.0)

    def sums(self, A: Tensor) -> Sums:
        """Return the sums of tr((CA)ᵀK(CA))."""
        product, pull, curvature = self._moving.sums(center(A))
        return Sums(center(product), pull, curvature)

    def tangent(self, A: Tensor, dU: Tensor, dA: Tensor) -> tuple[Tensor, Tensor]:
        """Return the directional derivatives of `sums`."""
        d_product, d_pull = self._moving.tangent(center(A), dU, center(dA))
        return center(d_product), d_pull

    def parameter_sum(self, A: Tensor) -> float:
        """Return the derivative with respect to log σ²."""
        return self.gram.parameter_sum(center(A))

    @property
    def rough(self) -> Gram:
        """The centred operator with cheaper products."""
        return self if self.gram.rough is self.gram else Centered(self.gram.rough)

    def subset(self, index: Tensor) -> Subset | None:
        """Return the operator of some points, centred among themselves."""
        part = self.gram.subset(index)
        return None if part is None else Subset(Centered(part.gram), lambda A: remove_mean_(part.extend(A)))

    def _drop_rounding_(self, product: Tensor, A: Tensor) -> Tensor:
        """Set columns of CKCA that are nothing but rounding to zero, in place.

        If the kernel cannot tell the samples apart, only rounding is left, which a fit would follow. With k the mean of
        the diagonal and r the rounding of a mean, each centred value is wrong by at most r·k, and a symmetric matrix of
        such errors has a norm of 2√n·r·k (Wigner). The n terms of an entry of CKCa have partial sums of at most k‖a‖:
        their rounding errors of eps/2 add up to √n·eps/2·k‖a‖, and over n entries to a length of n·eps/2·k‖a‖. Features
        φ are wrong by r·‖φ‖: where they differ by that, ΦᵀCa has the length √n·r·√k‖a‖, and CΦΦᵀCa n·r²·k‖a‖.
        """
        worth = self._worth(A.dtype)
        size, length = (collectives.root_sum_square(lengths(B, dim=0)) for B in (product, A))
        return product.masked_fill_(size <= worth * self._scale * length, 0.0)

    def rounding(self, dtype: torch.dtype) -> float:
        """Return the length of what rounding adds to a product with a vector of length 1."""
        return self._worth(dtype) * float(self._scale)

    def _worth(self, dtype: torch.dtype) -> float:
        """Return `rounding` relative to the mean of the diagonal of K."""
        n, r = collectives.samples(self.n), rounding_of_mean(self.n, dtype)
        entries = 2 * self._entries_worth(dtype) + n * torch.finfo(dtype).eps / 2
        return n * r * r if self.gram.of_features else entries

    def _entries_worth(self, dtype: torch.dtype) -> float:
        """Return the length of a row of rounding errors of kernel values, relative to the values."""
        return rounding_of_mean(self.n, dtype) * collectives.samples(self.n) ** 0.5

    @property
    def _scale(self) -> Tensor:
        """The mean of the diagonal of K, computed once."""
        # Not a cached_property: before Python 3.12 it would hold its lock while waiting for other threads.
        if self._mean_of_diagonal is None:
            self._mean_of_diagonal = collectives.mean(self.gram.diagonal())
        return self._mean_of_diagonal

    @property
    def _moving(self) -> MovingGram:
        assert isinstance(self.gram, MovingGram)
        return self.gram

    def _row_means(self) -> Tensor:
        ones = torch.full_like(self.gram.diagonal(), 1.0 / collectives.samples(self.n))
        return self.gram.matmul(ones[:, None])[:, 0]


def rounding_of_mean(rows: int, dtype: torch.dtype) -> float:
    """Return the relative rounding error of the mean of all samples, of which this process has `rows`."""
    return means.rounding_of_mean(collectives.samples(rows), torch.finfo(dtype).eps)


def center(A: Tensor) -> Tensor:
    """Return CA, the block with the mean of every column removed."""
    return remove_mean_(A.clone())


def remove_mean_(A: Tensor) -> Tensor:
    """Remove the mean of every column in place.

    Remainders within rounding of the mean are set to zero: equal numbers would otherwise leave a spread that a fit
    would follow.
    """
    mean = collectives.mean(A)
    within = rounding_of_mean(len(A), A.dtype) * mean.abs()
    for part in A.sub_(mean).split(SPREAD_ROWS):
        part.masked_fill_(part.abs() <= within, 0.0)
    return A
