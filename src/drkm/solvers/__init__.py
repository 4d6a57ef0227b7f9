"""Solvers: one file an algorithm, one `Result`."""

from drkm.solvers.augmented_lagrangian import AugmentedLagrangian
from drkm.solvers.base import Result, Solver, State, Status, solve
from drkm.solvers.eigensolver import Eigensolver
from drkm.solvers.lbfgs import LBFGS
from drkm.solvers.penalty import Penalty
from drkm.solvers.projected_gradient import ProjectedGradient
from drkm.solvers.trust_region import TrustRegion

__all__ = [
    "LBFGS",
    "AugmentedLagrangian",
    "Eigensolver",
    "Penalty",
    "ProjectedGradient",
    "Result",
    "Solver",
    "State",
    "Status",
    "TrustRegion",
    "by_name",
    "solve",
]

NAMES: dict[str, type[Solver]] = {
    "lbfgs": LBFGS,
    "trust-region": TrustRegion,
    "projected-gradient": ProjectedGradient,
    "penalty": Penalty,
    "augmented-lagrangian": AugmentedLagrangian,
}


def by_name(name: str, n_layers: int) -> Solver:
    """Return the solver of that name; "auto" is an eigensolver for one layer and `LBFGS` for more.

    `LBFGS` was the fastest in every case measured (docs/benchmarks.md).
    """
    if name == "auto":
        return Eigensolver() if n_layers == 1 else LBFGS()
    if name not in NAMES:
        raise ValueError(f"solver: unknown name {name!r}, allowed are auto, {', '.join(NAMES)} or a solver object")
    return NAMES[name]()
