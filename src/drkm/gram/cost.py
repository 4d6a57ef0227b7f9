"""Formulas for the cost of a fit: memory, operations and memory traffic of one gradient.

Every strategy implements `Strategy.cost(workload)`. This module has the parts that all strategies share: the samples,
the codes with the solver's workspace, and the swept deep layers. docs/scaling.md compares the formulas with
measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from drkm.distributed import collectives
from drkm.files.rows import pass_bytes
from drkm.kernels import Kernel
from drkm.kernels.bandwidth import MEDIAN_ROWS
from drkm.kernels.base import FEATURE_ENTRIES
from drkm.machine.devices import size_on
from drkm.wording import in_bytes, scaled

#: operations counted per kernel value, whose exponent is clamped and exponentiated
VALUE_FLOPS = 10
#: blocks of the Krylov method of a start, as wide as its iterates, that are alive at its peak
KRYLOV_BLOCKS = 22
#: maximum number of rows encoded at once; numbers that a batch may always use, and n×S blocks that it may use with many
#: samples
BATCH_ROWS, LEAST_BATCH, BATCH_BLOCKS = 1024, 1 << 21, 40

#: numbers that a search for pre-images needs; samples that a learned map is fitted to, at the cost of their cube
SEARCH_NUMBERS, RIDGE_ROWS = 24 << 17, 2000
#: with at least this many components a search keeps so many weights over the samples, and copies some of them
MANY_COMPONENTS, KEPT_NUMBERS = 64, 1 << 20
#: copies of a tile of samples that are alive while its tables are made
TILE_TABLES = 7

#: bytes that MKL keeps for every further thread
THREAD_BYTES = 12 << 20

#: tables of a deep layer's features that are alive at once: those of the codes before and after a step
FEATURE_TABLES = 2
#: blocks of features alive while some are formed or differentiated
FORMING = 8

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Workload:
    """The size of a fit: everything that its cost depends on.

    Attributes
    ----------
    n, d : int
        Samples and features.
    sizes : tuple of int
        Components of each layer.
    kernels : tuple of Kernel
        One per layer; only their type matters, and bandwidths may still be rules.
    dtype : torch.dtype
    device : torch.device
    resident : int
        Bytes of samples that are already on the device.
    on_disk : bool
        Whether the samples are in a file that can be read in tiles.
    blocks : int, optional
        n×S blocks alive at the peak of the training; by default those of the start.
    workspace : int, optional
        Bytes of an eigensolver that replaces the training, for kernel PCA, whose codes need no batches.
    """

    n: int
    d: int
    sizes: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    dtype: torch.dtype = torch.float64
    device: torch.device = CPU
    resident: int = 0
    on_disk: bool = False
    blocks: int | None = None
    workspace: int | None = None

    @property
    def item(self) -> int:
        """Bytes per number."""
        return self.dtype.itemsize

    @property
    def components(self) -> int:
        """S, the number of components of all layers."""
        return sum(self.sizes)

    @property
    def first_is_pairwise(self) -> bool:
        """Whether K_1 has to be computed entry by entry."""
        return not (self.kernels[0].is_explicit or self.kernels[0].is_given)

    @property
    def sample_bytes(self) -> int:
        """Bytes of the samples in the precision of the fit."""
        return self.n * self.d * self.item


@dataclass(frozen=True)
class Cost:
    """The cost of a strategy for a workload.

    Attributes
    ----------
    bytes : int
        Largest memory held at once on the device: samples, operators, codes and workspace.
    flops : float
        Operations of one gradient, all layers.
    traffic : float
        Bytes that one gradient moves to and from main memory.
    setup : float
        Operations before the first gradient.
    """

    bytes: int
    flops: float
    traffic: float = 0.0
    setup: float = 0.0

    def plus(self, *, bytes: int = 0, flops: float = 0.0, traffic: float = 0.0, setup: float = 0.0) -> Cost:
        """Return the sum of this cost and the given amounts."""
        return Cost(self.bytes + bytes, self.flops + flops, self.traffic + traffic, self.setup + setup)

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{in_bytes(self.bytes)} of memory, {in_flops(self.flops)} per gradient"


def common(work: Workload, *, samples: bool = True) -> Cost:
    """Return the common cost of strategies that sweep their deep layers: samples, codes, workspace, deep layers."""
    held = work.sample_bytes if samples else 0
    held += _training_bytes(work) if work.workspace is None else work.workspace
    cost = Cost(bytes=held, flops=0.0, traffic=10.0 * work.n * work.components * work.item)
    for kernel, below, own in zip(work.kernels[1:], work.sizes, work.sizes[1:], strict=False):
        if kernel.is_pairwise:
            cost = cost.plus(flops=swept_pairs(below, own) * work.n**2)
        else:
            width = kernel.width(below)
            held = work.n * (below + FEATURE_TABLES * width) * work.item + feature_blocks(work, kernel, below)
            cost = cost.plus(flops=8.0 * work.n * width * own, bytes=held)
    return cost


def _training_bytes(work: Workload) -> int:
    blocks = start_blocks(work.components) if work.blocks is None else work.blocks
    return blocks * work.n * work.components * work.item


def start_blocks(components: int) -> int:
    """Return the number of n×S blocks of the start."""
    return math.ceil(KRYLOV_BLOCKS * start_width(components) / components)


def start_width(components: int) -> int:
    """Return the number of columns of the start's iterates: twice the components, and half as many more."""
    return 2 * components + max(5, components)


def thread_bytes(device: torch.device) -> int:
    """Return the bytes that libraries keep for their threads on a CPU, besides the first one."""
    return THREAD_BYTES * (torch.get_num_threads() - 1) if device.type == "cpu" else 0


def rule_bytes(work: Workload) -> int:
    """Return the bytes that the median rule needs before training: products of 2,000 samples, two copies of them."""
    rows = min(work.n, MEDIAN_ROWS)
    return int(8 * rows * (1.2 * rows + 2 * work.d))


def encoder_bytes(work: Workload) -> int:
    """Return the bytes that encoding needs after training: those of the model, and one batch of new points."""
    if work.workspace is not None:
        return 0
    return _model_bytes(work) + work.item * batch_numbers(work.n, work.components)


def preimage_bytes(work: Workload, method: str, *, from_file: bool = False) -> int:
    """Return the bytes that pre-images need after training: those of the model, tables of the samples, and the search.

    The tables are those of all samples, or of one tile if samples are read from a file for every sweep.
    """
    rows = min(work.n, RIDGE_ROWS)
    kept = 2 * KEPT_NUMBERS if work.components >= MANY_COMPONENTS else 0
    search = 8 * rows * (9 * rows + 4 * work.d) if method == "ridge" else work.item * (SEARCH_NUMBERS + kept)
    tables = min(work.sample_bytes, pass_bytes(work.device)) * TILE_TABLES if from_file else 5 * work.sample_bytes
    return _model_bytes(work) + tables + search


def _model_bytes(work: Workload) -> int:
    """Return the bytes of a trained model besides its samples: codes, and the encoder's tables of the deep layers."""
    pairs = zip(work.sizes, work.sizes[1:], strict=False)
    tables = sum(4 * (below + own) + 2 * below * own + below * (below + 1) // 2 + 4 for below, own in pairs)
    return work.item * work.n * (tables + 6 * work.components)


def batch_numbers(n: int, components: int) -> int:
    """Return how many numbers a batch of new points may use: in proportion to what training used, or a minimum."""
    return max(LEAST_BATCH, BATCH_BLOCKS * n * components)


def batch_rows(n: int, components: int) -> int:
    """Return how many new points are encoded at once; each needs a few rows of n kernel values and some Hessians."""
    return max(1, min(BATCH_ROWS, batch_numbers(n, components) // (3 * n + 8 * components**2)))


def gathered_bytes(work: Workload) -> int:
    """Return the bytes of the samples of all other processes, which each has at the end of an exact fit."""
    return work.item * work.d * (collectives.samples(work.n) - work.n)


def swept_pairs(below: int, own: int) -> float:
    """Return the operations per pair of samples in a sweep of a deep layer.

    Exponent, value, weight ⟨a_i, a_j⟩ times slope, and the products of value and weight with their blocks.
    """
    return 2 * (below + 2) + VALUE_FLOPS + (2 * own + 1) + 2 * own + 2 * (below + 1)


def pair_flops(d: int) -> float:
    """Return the operations per kernel value of two points with d features."""
    return 2 * (d + 2) + VALUE_FLOPS


def feature_blocks(work: Workload, kernel: Kernel, inputs: int) -> int:
    """Return the bytes that computing features a few points at a time needs."""
    if not kernel.is_explicit:
        return 0
    entries = size_on(work.device, FEATURE_ENTRIES)
    return FORMING * work.item * min(entries, work.n * kernel.widest(inputs))


def first_of_features(work: Workload) -> Cost:
    """Return the cost of ΦΦᵀ as the first layer."""
    kernel = work.kernels[0]
    features = kernel.width(work.d)
    held = 0 if kernel.is_given else work.n * features * work.item
    width = work.n if kernel.is_given else 2 * features
    product = 2.0 * work.n * width * work.sizes[0]
    return Cost(bytes=held, flops=product, traffic=float(work.n * width * work.item))


def features_cost(work: Workload, width: int) -> Cost:
    """Return the cost of a first layer of kept features, with samples, codes and workspace, without deep layers."""
    alone = replace(work, kernels=work.kernels[:1])
    return common(alone, samples=not work.on_disk).plus(
        bytes=work.n * width * work.item,
        flops=4.0 * work.n * width * work.sizes[0],
        traffic=2.0 * work.n * width * work.item,
    )


def in_flops(number: float) -> str:
    """Return a number of operations in the largest decimal unit in which it is above one."""
    return f"{scaled(number)}flop"
