"""A smaller problem inside the large one: part of the samples, and the way back to all of them.

Most iterations of a deep fit go into finding a basin, which a part of the samples shows as well at a fraction of the
cost. Codes are carried over by kernel ridge regression with the first layer's kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drkm import stiefel
from drkm.energy import Energy

#: part of the samples that a level keeps, and how many a component at least
FRACTION = 0.35
ROWS_PER_COMPONENT = 12
#: below this many samples the smaller problem is not cheaper
MIN_SAMPLES = 600
RIDGE = 1e-3


@dataclass(frozen=True)
class Restriction:
    """The problem of some of the samples."""

    full: Energy
    energy: Energy
    index: Tensor
    #: the rows of a start, made orthonormal
    H: Tensor

    @property
    def is_smallest(self) -> bool:
        """Whether this problem has no smaller one inside."""
        return size_of_part(self.energy) is None

    def prolong(self, codes: Tensor) -> Tensor:
        """Return codes of all samples that continue those of the part."""
        across = self.full.first.rows(self.index)
        K = across[:, self.index].double()
        ridge = RIDGE * K.diagonal().mean() * torch.eye(len(K), dtype=K.dtype, device=K.device)
        weights = torch.linalg.solve(K + ridge, codes.double())
        return stiefel.polar(across.T @ weights.to(across.dtype))


def size_of_part(energy: Energy) -> int | None:
    """Return how many samples the next smaller problem has, or None where it would not pay."""
    m = max(int(FRACTION * energy.n), ROWS_PER_COMPONENT * energy.n_components)
    return None if energy.n < MIN_SAMPLES or m > energy.n // 2 else m


def restrict(energy: Energy, H: Tensor) -> Restriction | None:
    """Return the problem of a part of the samples, or None where there is none that pays."""
    m = size_of_part(energy)
    if m is None:
        return None
    # A fixed generator: a fit must not depend on who else draws random numbers.
    order = torch.randperm(energy.n, generator=torch.Generator().manual_seed(0))
    index = order[:m].sort().values.to(energy.device)
    small = energy.restricted(index)
    return None if small is None else Restriction(energy, small, index, stiefel.polar(H[index]))
