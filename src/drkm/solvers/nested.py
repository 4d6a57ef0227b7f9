"""A nested step: solve the problem on some of the samples first, and carry the codes over to all of them.

Most iterations of a deep fit go into finding a basin, which a part of the samples shows as well at a fraction of the
cost. Codes are carried over by kernel ridge regression with the first layer's kernel.
"""

from __future__ import annotations

from collections.abc import Callable

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


def nested_step(energy: Energy, H: Tensor, solve_restricted: Callable[[Energy, Tensor], Tensor]) -> Tensor | None:
    """Return codes of all samples that continue those of a solved subset, or None where this cannot pay.

    Parameters
    ----------
    energy : Energy
        The problem.
    H : Tensor of shape (n, S)
        The present codes; their rows on the subset are where its solution begins.
    solve_restricted : callable
        Solves the problem of the subset from a start.
    """
    n = energy.n
    m = max(int(FRACTION * n), ROWS_PER_COMPONENT * energy.n_components)
    if n < MIN_SAMPLES or m > n // 2:
        return None
    # A fixed generator: a fit must not depend on who else draws random numbers.
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    index = order[:m].sort().values.to(energy.device)
    small = energy.restricted(index)
    if small is None:
        return None
    codes = solve_restricted(small, stiefel.polar(H[index]))
    across = energy.first.rows(index)
    K = across[:, index].double()
    ridge = RIDGE * K.diagonal().mean() * torch.eye(m, dtype=K.dtype, device=K.device)
    return stiefel.polar(across.T @ torch.linalg.solve(K + ridge, codes.double()).to(H.dtype))
