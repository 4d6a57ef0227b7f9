"""Points that are passed to `KernelPCA`, and their codes: those of few points are computed without torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from drkm.kernel_pca.parameters import is_precomputed
from drkm.machine.threads import one_thread_of_blas
from drkm.persistence.kernel_pca_file import SavedComponents
from drkm.serving import Projection
from drkm.validation import checks
from drkm.validation.samples import checked

if TYPE_CHECKING:
    from torch import Tensor

    from drkm.inference.kernel_projection import KernelProjection

#: kernel values up to which numpy is as fast as torch
FEW_VALUES = 1 << 15


def read(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate samples and return them as an array, which may be sparse, or as a tensor."""
    if checks.is_tensor(X):
        from drkm import inputs

        return inputs.read(estimator, X, reset=reset)
    sparse = False if is_precomputed(estimator.kernel) else "csr"
    return checked(estimator, X, reset=reset, accept_sparse=sparse, dtype=(np.float64, np.float32))


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of points, in the precision of the samples.

    Whether numpy or torch computes them on a CPU depends on the number of kernel values and on the kernel alone. So a
    model gives the same bits for arrays and tensors, before `save` and after `load`, whether or not torch is imported.

    Parameters
    ----------
    source : KernelProjection or SavedComponents
        What a fit found, or what a file holds if numpy can compute its kernel.
    n_samples : int
        Number of training samples.
    precision : {"float64", "float32"}
    """

    source: KernelProjection | SavedComponents
    n_samples: int
    precision: str

    def __call__(self, points: Any) -> Any:
        """Return the codes of the rows of an array or sparse matrix as an array, those of a tensor as a tensor."""
        is_tensor = checks.is_tensor(points)
        if self._are_few(points) and self._by_numpy is not None:
            # Threads of two libraries would be in each other's way.
            with one_thread_of_blas():
                found = self._by_numpy.codes(points.numpy(force=True) if is_tensor else points)
            return _as_tensor(found) if is_tensor else found
        from drkm.kernel_pca import by_torch

        codes = by_torch.codes(self.projection, points, self.precision)
        return codes if is_tensor else codes.numpy(force=True)

    def _are_few(self, points: Any) -> bool:
        on_cpu = isinstance(points, np.ndarray) or (checks.is_tensor(points) and not points.is_cuda)
        return on_cpu and points.shape[0] * self.n_samples <= FEW_VALUES

    @cached_property
    def projection(self) -> KernelProjection:
        """The codes as a function of tensors."""
        if not isinstance(self.source, SavedComponents):
            return self.source
        from drkm.kernel_pca import by_torch

        return by_torch.projection(self.source)

    @cached_property
    def _by_numpy(self) -> Projection | None:
        return self.source.served(self.precision)

    def __getstate__(self) -> dict[str, Any]:
        whole = self.projection
        # A pickle is at most half as large again as samples and codes.
        numbers = whole.points.shape[0] * (whole.points.shape[1] + whole.weights.shape[1]) // 2
        return {"source": whole.in_fixed_basis(numbers), "n_samples": self.n_samples, "precision": self.precision}


def _as_tensor(found: np.ndarray) -> Tensor:
    import torch

    return torch.from_numpy(found)
