"""Samples shared out over processes: each holds some rows of X and H, and sums over samples are exchanged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch.distributed as dist
from torch import Tensor

from drkm.files.rows import Rows
from drkm.gram.base import Gram, MovingGram, Strategy, register
from drkm.gram.cost import Cost, Workload
from drkm.gram.nystroem import Nystroem
from drkm.kernels import Kernel
from drkm.validation import checks


@register
@dataclass(frozen=True)
class Sharded(Strategy):
    """Gram matrices ΦΦᵀ of explicit features whose rows are shared out over the processes of a group.

    Every process passes its own rows to `fit` and gets the codes of those rows; everything else that a fit learns is
    the same in all of them. A product ΦΦᵀA takes ΦᵀA (as many rows as there are features, one column a component),
    summed over processes; nothing whose size grows with the number of samples is exchanged in an iteration.

    Parameters
    ----------
    inner : Strategy
        Which features each process computes for its own rows.
    group : torch.distributed.ProcessGroup, optional
        Whose processes share the samples; by default all of `torch.distributed`, in a group made for each fit.
    timeout : float
        Seconds after which a process that does not answer counts as lost; a given group has its own limit.
    """

    inner: Strategy = field(default_factory=Nystroem)
    group: Any = field(default=None, repr=False)
    timeout: float = 1800.0

    name = "sharded"
    shares = True

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Strategy):
            raise TypeError(f"inner: expected a drkm.gram object, got {self.inner!r}")
        checks.number("timeout", self.timeout)

    def serves(self, work: Workload) -> bool:
        """Whether there are processes to share with, and the features can be had."""
        return dist.is_available() and dist.is_initialized() and self.inner.serves(work)

    def cost(self, work: Workload) -> Cost:
        """Return what this process needs for its own rows."""
        return self.inner.cost(work)

    def describe(self) -> str:
        """Return a few words for people."""
        return f"{self.inner.describe()} for the rows of each process"

    def approximate(self, kernel: Kernel, points: Tensor | Rows, *, layer: int) -> Kernel:
        """Return the explicit features that the model has in a layer."""
        chosen = self.inner.approximate(kernel, points, layer=layer)
        if not chosen.is_explicit:
            raise ValueError(
                f"gram: processes can share kernels of explicit features alone, got {type(kernel).__name__} in layer "
                f"{layer}, which {type(self.inner).__name__} does not turn into features"
            )
        return chosen

    @property
    def alone(self) -> Strategy:
        """The strategy of one process: who shares the samples does not change the result."""
        return self.inner

    def fixed(self, kernel: Kernel, points: Tensor | Rows) -> Gram:
        """Return the operator of the first layer."""
        return self.inner.fixed(kernel, points)

    def moving(self, kernel: Kernel, points: Tensor) -> MovingGram:
        """Return the operator of a deep layer."""
        return self.inner.moving(kernel, points)

    def sharing(
        self, X: Tensor | Rows, settings: Callable[[], str], checkpoint: str | os.PathLike[str] | None
    ) -> AbstractContextManager[None]:
        """Return what shares the rows of X with the other processes while a fit lasts."""
        from drkm.distributed.process_group import sharing

        digest = hashlib.sha256(settings().encode()).hexdigest()
        return sharing(self.group, X, digest, timeout=self.timeout, checkpoint=checkpoint)
