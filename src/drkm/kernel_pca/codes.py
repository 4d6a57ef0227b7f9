"""Points that are passed to `KernelPCA`, and their codes, which numpy computes alone where it is as fast as torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from drkm.kernel_pca.parameters import is_precomputed
from drkm.machine.threads import SMALL, one_thread_of_blas
from drkm.serving import Projection
from drkm.validation import checks
from drkm.validation.samples import as_array, checked

if TYPE_CHECKING:
    from torch import Tensor

    from drkm.inference.kernel_projection import KernelProjection


def read(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate samples and return them as an array, which may be sparse, or as a tensor."""
    if checks.is_tensor(X):
        from drkm import inputs

        return inputs.read(estimator, X, reset=reset)
    sparse = False if is_precomputed(estimator.kernel) else "csr"
    return checked(estimator, X, reset=reset, accept_sparse=sparse, dtype=(np.float64, np.float32))


def are_few(X: Any) -> bool:
    """Whether samples are so few that threads take longer to wake up than to copy and multiply them."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return len(shape) > 0 and shape[0] ** 2 < SMALL


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of points, in the precision of the samples.

    Whether numpy or torch computes them on a CPU depends on the kernel and the number of kernel values alone. So a
    model gives the same bits for arrays and tensors, before `save` and after `load`, whether or not torch is imported.

    Parameters
    ----------
    source : KernelProjection or Projection
        The codes as a function of points, by torch or by numpy alone.
    samples : array or Tensor
        Training samples.
    precision : {"float64", "float32"}
    """

    source: KernelProjection | Projection
    samples: Any
    precision: str

    def __call__(self, points: Any) -> Any:
        """Return the codes of the rows of an array or sparse matrix as an array, those of a tensor as a tensor."""
        is_tensor, plain = checks.is_tensor(points), self._by_numpy
        are_few = plain is not None and plain.are_few(points.shape[0])
        if plain is not None and (plain.is_quick or are_few):
            # Threads of two libraries would be in each other's way.
            with one_thread_of_blas(are_few):
                found = plain.codes(as_array(points))
            return _as_tensor(found) if is_tensor else found
        from drkm.kernel_pca import by_torch

        codes = by_torch.codes(self.projection, points, self.precision)
        return codes if is_tensor else codes.numpy(force=True)

    @cached_property
    def projection(self) -> KernelProjection:
        """The codes as a function of tensors."""
        if not isinstance(self.source, Projection):
            return self.source
        from drkm.kernel_pca import by_torch

        return by_torch.projection(self.source, self.samples)

    def plain(self, names: tuple[str, ...]) -> Projection:
        """Return the codes as a function of arrays with numpy alone, which checks the names of columns."""
        if isinstance(self.source, Projection):
            return replace(self.source, feature_names=names)
        return self.source.numpy(self.precision, names)

    def described_kernel(self) -> tuple[dict[str, Any] | None, Mapping[str, Any]]:
        """Return the entry of the kernel in the header of a file, and its arrays."""
        if isinstance(self.source, Projection):
            return {"type": self.source.kernel, "parameters": dict(self.source.parameters)}, {}
        from drkm.kernel_pca import by_torch

        return by_torch.described(self.source.kernel)

    @cached_property
    def _by_numpy(self) -> Projection | None:
        return self.source if isinstance(self.source, Projection) else self.source.served(self.precision)

    def __getstate__(self) -> dict[str, Any]:
        source = self.source
        if not isinstance(source, Projection):
            # A pickle is at most half as large again as samples and codes.
            numbers = source.points.shape[0] * (source.points.shape[1] + source.weights.shape[1]) // 2
            source = source.in_fixed_basis(numbers)
        return {"source": source, "samples": self.samples, "precision": self.precision}


def written(points: Any, precision: str, like: Any) -> Any:
    """Return points in this precision: a tensor if codes were one, otherwise an array."""
    found = as_array(points).astype(precision, copy=False)
    return _as_tensor(found).to(like.device) if checks.is_tensor(like) else found


def _as_tensor(found: np.ndarray) -> Tensor:
    import torch

    return torch.from_numpy(found)
