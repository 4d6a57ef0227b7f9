"""The plan of a fit: its validated parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from drkm.gram import Strategy
from drkm.gram.cost import start_blocks
from drkm.kernels import Kernel
from drkm.solvers import Solver
from drkm.solvers.loop import Callback

#: additional n×S blocks at the peak of a start: centred copies of what K_1 is multiplied by
CENTRED_BLOCKS = 6


@dataclass(frozen=True)
class Plan:
    """All validated parameters of a fit, with one entry per layer where there is one per layer."""

    sizes: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    #: None means "auto": weights are computed from the samples (`drkm.training.layer_weights`)
    eta: tuple[float, ...] | None
    lam: tuple[float, ...]
    strategy: Strategy
    solver: Solver
    center: bool = False
    init: str | Tensor = "kpca"
    n_init: int = 1
    axes: str | None = "ritz"
    learn_bandwidth: bool = False
    encoder: str = "stationary"
    tol: float = 1e-6
    max_iter: int = 1000
    max_seconds: float | None = None
    seed: int = 0
    callbacks: Sequence[Callback] = ()
    #: called with a description of each step outside of iterations
    tell: Callable[[str], None] = lambda _: None

    @property
    def blocks(self) -> int:
        """n×S blocks alive at once: the Krylov basis of a start or the solver's blocks, and the earlier starts."""
        own = max(start_blocks(sum(self.sizes)), self.solver.blocks)
        return own + (CENTRED_BLOCKS if self.center else 0) + 2 * (self.n_init > 1) + self.n_init - 1
