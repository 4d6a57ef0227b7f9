"""scikit-learn's kernels: mapped to ours where there is an equivalent, otherwise computed by scikit-learn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from drkm.kernels.base import Kernel
from drkm.kernels.cosine import Cosine
from drkm.kernels.linear import Linear
from drkm.kernels.polynomial import LARGEST_DEGREE, Polynomial
from drkm.kernels.rbf import RBF

NAMES = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")


@dataclass(frozen=True)
class ScikitKernel:
    """A kernel of scikit-learn, or a function of two samples, on arrays that may be sparse.

    Parameters
    ----------
    metric : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, or a function of two samples.
    parameters : dict
        Parameters of the kernel; those that a named kernel does not know are ignored.
    n_jobs : int, optional
    """

    is_of_torch: ClassVar[bool] = False

    metric: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the matrix of kernel values of the rows of X and Y, or of X with itself."""
        from sklearn.metrics.pairwise import pairwise_kernels

        return pairwise_kernels(X, Y, metric=self.metric, filter_params=True, n_jobs=self.n_jobs, **self.parameters)


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

    def own(self, gamma: float) -> Kernel | None:
        """Return our kernel with the same values, or None if we have none.

        exp(-γ‖x-y‖²) is RBF with σ² = 1/(2γ), and (γ x·y + c)^p is Polynomial.
        """
        name = self.kernel
        if not isinstance(name, str):
            # Kernel objects know their family; plain functions do not.
            return name if hasattr(name, "is_pairwise") else None
        if name in ("linear", "cosine"):
            return Linear() if name == "linear" else Cosine()
        # For a tiny γ the bandwidth would overflow; all values are then 1.
        if name == "rbf" and gamma > 0 and math.isfinite(0.5 / gamma):
            return RBF(0.5 / gamma)
        whole = float(self.degree).is_integer() and 1 <= self.degree <= LARGEST_DEGREE
        if name == "poly" and whole and gamma > 0 and self.coef0 >= 0:
            return Polynomial(int(self.degree), float(gamma), float(self.coef0))
        return None

    def scikit(self, gamma: float) -> ScikitKernel:
        """Return the kernel as scikit-learn computes it."""
        named = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        given = (self.kernel_params or {}) if callable(self.kernel) else named
        return ScikitKernel(self.kernel, given, self.n_jobs)
