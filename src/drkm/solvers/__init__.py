"""Solvers: one module per algorithm, all with the same `Result`."""

# Importing a module registers its solver; lists of solvers follow the order of these lines.
# isort: off
from drkm.solvers.lbfgs import LBFGS as LBFGS
from drkm.solvers.trust_region import TrustRegion as TrustRegion
from drkm.solvers.projected_gradient import ProjectedGradient as ProjectedGradient
from drkm.solvers.penalty import Penalty as Penalty
from drkm.solvers.augmented_lagrangian import AugmentedLagrangian as AugmentedLagrangian
from drkm.solvers.eigensolver import Eigensolver as Eigensolver

# isort: on
from drkm.solvers.base import NAMES, Solver, register
from drkm.solvers.loop import solve
from drkm.solvers.result import Result, Status
from drkm.solvers.state import PointState, State

__all__ = [
    "PointState",
    "Result",
    "Solver",
    "State",
    "Status",
    "by_name",
    "register",
    "solve",
    *(kind.__name__ for kind in NAMES.values()),
]


def by_name(name: str, n_layers: int) -> Solver:
    """Return the solver of that name; "auto" is an eigensolver for one layer and `LBFGS` for more.

    `LBFGS` was the fastest in every case measured (docs/benchmarks.md).
    """
    if name == "auto":
        return Eigensolver() if n_layers == 1 else LBFGS()
    if name not in NAMES:
        raise ValueError(f"solver: unknown name {name!r}, allowed are auto, {', '.join(NAMES)} or a solver object")
    return NAMES[name]()
