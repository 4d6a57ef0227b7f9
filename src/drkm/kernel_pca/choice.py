"""Scikit-learn's parameters that name a kernel, mapped to our kernels where there is an equivalent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drkm.serving.formulas import LARGEST_DEGREE

if TYPE_CHECKING:
    from drkm.arrays.scikit_learn import ScikitKernel
    from drkm.kernels import Kernel

NAMES = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")
#: our classes of those without parameters
PLAIN = {"linear": "Linear", "cosine": "Cosine"}


@dataclass(frozen=True)
class KernelChoice:
    """Scikit-learn's parameters that name a kernel.

    Parameters
    ----------
    kernel : str, callable or Kernel
        One of `NAMES`, a function of two samples, or a kernel of ours.
    gamma : float, optional
        γ; by default 1/n_features.
    degree, coef0 : float
    kernel_params : dict, optional
        Further arguments of a function.
    n_jobs : int, optional
    """

    kernel: Any
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    n_jobs: int | None

    def gamma_of(self, n_features: int) -> float:
        """Return γ for samples of so many features."""
        return 1 / n_features if self.gamma is None else float(self.gamma)

    def named(self, gamma: float) -> tuple[str, dict[str, Any]] | None:
        """Return class and parameters of our kernel with the same values as the named one, or None if we have none.

        exp(-γ‖x-y‖²) is RBF with σ² = 1/(2γ), and (γ x·y + c)^p is Polynomial.
        """
        name = self.kernel
        if name in PLAIN:
            return PLAIN[name], {}
        # For a tiny γ the bandwidth would overflow, and all values are 1; for a huge one its inverse would.
        if name == "rbf" and gamma > 0 and math.isfinite(0.5 / gamma) and math.isfinite(2 * gamma):
            return "RBF", {"sigma2": 0.5 / gamma}
        whole = float(self.degree).is_integer() and 1 <= self.degree <= LARGEST_DEGREE
        if name == "poly" and whole and gamma > 0 and self.coef0 >= 0:
            return "Polynomial", {"degree": int(self.degree), "gamma": float(gamma), "offset": float(self.coef0)}
        return None

    def own(self, gamma: float) -> Kernel | None:
        """Return our kernel with the same values, or None if we have none."""
        if not isinstance(self.kernel, str):
            # Kernel objects know their family; plain functions do not.
            return self.kernel if hasattr(self.kernel, "is_pairwise") else None
        from drkm.kernels import KINDS

        found = self.named(gamma)
        return None if found is None else KINDS[found[0]](**found[1])

    def scikit(self, gamma: float) -> ScikitKernel:
        """Return the kernel as scikit-learn computes it."""
        from drkm.arrays.scikit_learn import ScikitKernel

        named = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        given = (self.kernel_params or {}) if callable(self.kernel) else named
        return ScikitKernel(self.kernel, given, self.n_jobs)
