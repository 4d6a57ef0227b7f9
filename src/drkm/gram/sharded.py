"""Samples shared out over processes: each holds some rows of X and H, and sums over samples are exchanged."""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor

from drkm.gram.base import Gram, MovingGram, Strategy
from drkm.gram.dense import Dense
from drkm.kernels import Explicit, Kernel


class Sharded(Strategy):
    """Gram matrices ΦΦᵀ of explicit features whose rows are shared out over the processes of a group.

    Every process passes its own rows to `fit` and gets the codes of those rows; everything else that a fit learns is
    the same in all of them. A product ΦΦᵀA takes ΦᵀA (as many rows as there are features, one column a component),
    summed over processes; nothing whose size grows with the number of samples is exchanged in an iteration.

    Parameters
    ----------
    inner : Strategy, optional
        Which features each process computes for its own rows.
    group : torch.distributed.ProcessGroup, optional
        Whose processes share the samples; by default all of `torch.distributed`.
    timeout : float
        Seconds after which a process that does not answer counts as lost.
    """

    def __init__(self, inner: Strategy | None = None, group: Any = None, timeout: float = 1800.0):
        self.inner = Dense() if inner is None else inner
        self.group = group
        self.timeout = timeout

    def fixed(self, kernel: Kernel, points: Tensor) -> Gram:
        """Return the operator of the first layer."""
        return self.inner.fixed(_explicit(kernel), points)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        return self.inner.moving(_explicit(kernel), points)

    def sharing(
        self, X: Tensor, settings: str, checkpoint: str | os.PathLike[str] | None
    ) -> AbstractContextManager[None]:
        """Return what shares the rows of X with the other processes while a fit lasts."""
        from drkm.processes import sharing

        digest = hashlib.sha256(settings.encode()).hexdigest()
        return sharing(self.group, X, digest, timeout=self.timeout, checkpoint=checkpoint)


def _explicit(kernel: Kernel) -> Kernel:
    if not isinstance(kernel, Explicit):
        raise ValueError(f'gram: "sharded" needs kernels of explicit features, got {kernel.describe()}')
    return kernel
