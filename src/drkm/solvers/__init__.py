"""Solvers: one file an algorithm, one `Result`."""

from drkm.solvers.base import Result, Solver, State, Status, solve
from drkm.solvers.lbfgs import LBFGS
from drkm.solvers.projected_gradient import ProjectedGradient
from drkm.solvers.trust_region import TrustRegion

__all__ = ["LBFGS", "ProjectedGradient", "Result", "Solver", "State", "Status", "TrustRegion", "solve"]
