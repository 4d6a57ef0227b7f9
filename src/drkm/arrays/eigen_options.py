"""How the eigenpairs of kernel PCA are to be found; without torch, because files hold these options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SOLVERS = ("auto", "dense", "arpack", "randomized")
#: up to this many samples, or if more than this share of the spectrum is wanted, "auto" is the dense solver
DENSE_BELOW, DENSE_SHARE = 120, 1 / 8


@dataclass(frozen=True)
class EigenOptions:
    """Scikit-learn's `eigen_solver`, `tol`, `max_iter`, `iterated_power` and `random_state`."""

    solver: str = "auto"
    tol: float = 0.0
    max_iter: int | None = None
    power: Any = "auto"
    random_state: Any = None

    def solver_for(self, n: int, count: int) -> str:
        """Return how so many of n eigenpairs are found: "dense", "randomized", or "krylov", by Lanczos or ARPACK."""
        if self.solver == "arpack":
            # ARPACK finds fewer than all.
            return "dense" if count >= n else "krylov"
        if self.solver != "auto":
            return self.solver
        return "dense" if n <= DENSE_BELOW or count > DENSE_SHARE * n else "krylov"
