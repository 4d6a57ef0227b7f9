"""Kernels that scikit-learn computes, because we have none with the same values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np


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
