"""What a fit costs, as a formula: bytes held, operations and bytes moved of one gradient.

Every strategy answers `Strategy.cost(workload)`. The pieces that all strategies share are here: the samples, the codes
with the solver's workspace, and the deep layers, which are swept. docs/scaling.md holds the model against measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from drkm.kernels import Kernel

#: operations that one kernel value counts for: its exponent is clamped and exponentiated
VALUE_FLOPS = 10
#: n×S blocks alive at the peak of a fit, of which the Krylov basis of the start takes most
WORKSPACE_BLOCKS = 80

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Workload:
    """The size of a fit: everything its cost depends on.

    Attributes
    ----------
    n, d : int
        Samples and features.
    sizes : tuple of int
        Components of each layer.
    kernels : tuple of Kernel
        One a layer; only their kind matters, their bandwidths may still be rules.
    dtype : torch.dtype
    device : torch.device
    resident : int
        Bytes of the samples that are on the device already.
    on_disk : bool
        The samples are in a file that can be read in tiles.
    """

    n: int
    d: int
    sizes: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    dtype: torch.dtype = torch.float64
    device: torch.device = CPU
    resident: int = 0
    on_disk: bool = False

    @property
    def item(self) -> int:
        """Bytes of a number."""
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
    """What a strategy needs for a workload.

    Attributes
    ----------
    bytes : int
        Largest memory held at once on the device: samples, operators, codes and workspace.
    flops : float
        Operations of one gradient, all layers.
    traffic : float
        Bytes that one gradient moves from and to main memory.
    setup : float
        Operations before the first gradient.
    """

    bytes: int
    flops: float
    traffic: float = 0.0
    setup: float = 0.0

    def plus(self, *, bytes: int = 0, flops: float = 0.0, traffic: float = 0.0, setup: float = 0.0) -> Cost:
        """Return the cost with something added to its parts."""
        return Cost(self.bytes + bytes, self.flops + flops, self.traffic + traffic, self.setup + setup)

    def describe(self) -> str:
        """One short line for people."""
        return f"{in_bytes(self.bytes)} of memory, {in_flops(self.flops)} a gradient"


def common(work: Workload, *, samples: bool = True) -> Cost:
    """Return what every strategy that sweeps its deep layers needs: samples, codes, workspace, deep layers."""
    held = work.sample_bytes if samples else 0
    held += WORKSPACE_BLOCKS * work.n * work.components * work.item
    cost = Cost(bytes=held, flops=0.0, traffic=10.0 * work.n * work.components * work.item)
    for kernel, below, own in zip(work.kernels[1:], work.sizes, work.sizes[1:], strict=False):
        if kernel.is_pairwise:
            cost = cost.plus(flops=swept_pairs(below, own) * work.n**2)
        else:
            cost = cost.plus(flops=8.0 * work.n * below * own, bytes=work.n * below * work.item)
    return cost


def swept_pairs(below: int, own: int) -> float:
    """Return the operations for one pair of samples in a sweep of a deep layer.

    Exponent, value, weight ⟨a_i, a_j⟩ times slope, and the products of value and weight with their blocks.
    """
    return 2 * (below + 2) + VALUE_FLOPS + (2 * own + 1) + 2 * own + 2 * (below + 1)


def pair_flops(d: int) -> float:
    """Return the operations for one kernel value of two points with d features."""
    return 2 * (d + 2) + VALUE_FLOPS


def first_of_features(work: Workload) -> Cost:
    """Return what ΦΦᵀ adds as the first layer, with as many features as inputs; a feature map may have more."""
    features = 0 if work.kernels[0].is_given else work.n * work.d * work.item
    width = work.n if work.kernels[0].is_given else 2 * work.d
    product = 2.0 * work.n * width * work.sizes[0]
    return Cost(bytes=features, flops=product, traffic=float(work.n * width * work.item))


def features_cost(work: Workload, width: int) -> Cost:
    """Return what a first layer of kept features needs, with samples, codes and workspace; deep layers left out."""
    alone = replace(work, kernels=work.kernels[:1])
    return common(alone, samples=not work.on_disk).plus(
        bytes=work.n * width * work.item,
        flops=4.0 * work.n * width * work.sizes[0],
        traffic=2.0 * work.n * width * work.item,
    )


def in_bytes(number: float) -> str:
    """Return a number of bytes in the largest decimal unit that leaves it above one."""
    return f"{_scaled(number)}B"


def in_flops(number: float) -> str:
    """Return a number of operations in the largest decimal unit that leaves it above one."""
    return f"{_scaled(number)}flop"


def _scaled(number: float) -> str:
    for unit in ("", "k", "M", "G", "T", "P"):
        if number < 999.5 or unit == "P":
            return f"{number:.3g} {unit}"
        number /= 1000
    raise AssertionError
