"""Nyström features: a kernel approximated through its values at a few landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.kernels.approximation import TABLE_ROWS, Approximation
from drkm.kernels.base import Kernel, Pairwise, register
from drkm.machine import memory
from drkm.machine.layout import slices

#: eigenvalues of K_ZZ below this many rounding errors of its trace are dropped: their features would be noise
CUT = 10
#: rows on which the missed part of the trace is estimated
ERROR_ROWS = 5000
#: landmarks at which features are checked, and the factor by which rounding may lengthen them
FEW, LONGER = 100, 1.1
#: bytes that forming F needs per entry
FORMING = 64


@register
@dataclass(frozen=True, eq=False)
class NystroemFeatures(Approximation):
    """φ(x) = k(x, Z) F with FFᵀ = K_ZZ⁺: the projection of k's own feature map on the span of m landmarks Z.

    The residual of the projection is positive semi-definite, K - ΦΦᵀ ⪰ 0, and its diagonal shows how large it is.

    Parameters
    ----------
    kernel : Pairwise
        The kernel that is approximated, with all parameters as numbers.
    landmarks : Tensor of shape (m, d)
        Z.
    given_factor : Tensor of shape (m, r), optional
        F. By default `factor` computes it when it is first needed, and pickles leave it out: a model whose numbers
        refer to its basis keeps it.
    """

    serves = Pairwise
    preimages_without_samples = True
    kernel: Pairwise
    landmarks: Tensor = field(repr=False)
    given_factor: Tensor | None = field(default=None, repr=False)

    @property
    def factor(self) -> Tensor:
        """F; if none is given, from the eigenvectors of K_ZZ in float64, without those that are rounding errors."""
        if self.given_factor is not None:
            return self.given_factor
        # Not a cached_property: before Python 3.12 it would hold its lock while waiting for other threads.
        kept = vars(self)
        if "_formed" not in kept:
            kept["_formed"] = inverse_root(self.kernel, self.landmarks)
        return kept["_formed"]

    @classmethod
    def read(cls, kernel: Kernel, entry: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """Rebuild the features from a file; a factor that it does not hold is computed when it is first needed."""
        landmarks = arrays["landmarks"]
        if entry.get("formed"):
            memory.require(
                FORMING * len(landmarks) ** 2, landmarks.device, "path: forming the factor of landmarks again"
            )
        return cls(kernel, landmarks, arrays.get("factor"))  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "landmarks": self.landmarks, "given_factor": self.given_factor}

    @property
    def _inputs(self) -> Tensor:
        return self.landmarks.T

    @property
    def count(self) -> int:
        """r ≤ m."""
        return self.factor.shape[1]

    @property
    def arrays(self) -> dict[str, Tensor]:
        """The landmarks, and the factor if it cannot be formed from them."""
        given = {} if self.given_factor is None else {"factor": self.given_factor}
        return {"landmarks": self.landmarks, **given}

    @property
    def entry(self) -> dict[str, Any]:
        """Entry in the header of a model file, with the number of landmarks and whether they give the factor."""
        own = super().entry
        return own if self.given_factor is not None else {**own, "formed": True, "landmarks": len(self.landmarks)}

    @property
    def with_preimages(self) -> Kernel:
        """The approximated kernel: the landmarks span a part of its own feature space."""
        return self.kernel

    @property
    def in_same_basis(self) -> Self:
        """The features with their factor, because a factor that is computed elsewhere may be rotated by rounding."""
        return type(self)(self.kernel, self.landmarks, self.factor)

    def with_parameters(self, **parameters: float | str) -> Self:
        """Return the features of another kernel at the same landmarks."""
        return type(self)(self.kernel.with_parameters(**parameters), self.landmarks)

    def in_basis(self, B: Tensor) -> Self:
        """Return the features φ(x)B for an r×s matrix B of orthonormal columns; codes in their span need no more."""
        return type(self)(self.kernel, self.landmarks, self.factor @ B)

    def features(self, x: Tensor) -> Tensor:
        """Return k(x, Z)F."""
        return self.kernel(x, self.landmarks) @ self.factor

    def mean_features(self, points: Tensor) -> Tensor:
        """Return the mean of φ over points; only kernel values are formed of each, a few thousand at a time."""
        parts = [self.kernel(points[rows], self.landmarks).sum(dim=0) for rows in slices(len(points), TABLE_ROWS)]
        return (torch.stack(parts).sum(dim=0) / len(points)) @ self.factor

    def pullback(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the map V ↦ ∂⟨φ(x), V⟩/∂x, in closed form."""
        Z, kernel = self.landmarks, self.kernel
        slope = kernel.jet(kernel.exponents(x, Z), 1)[1]

        def pull(V: Tensor) -> Tensor:
            W = slope * (V @ self.factor.T)
            own = W.sum(dim=1, keepdim=True) * x if kernel.is_isotropic else 0.0
            return kernel.pull_scale * (W @ Z - own)

        return pull

    def width_features(self, x: Tensor) -> Tensor:
        """Return ∂φ/∂log σ², up to a rotation: k'(x, Z)F - k(x, Z)K_ZZ⁺K'_ZZF/2."""
        return self._width_slope(x) @ self.factor - self.features(x) @ self._half_turn

    @cached_property
    def _half_turn(self) -> Tensor:
        return 0.5 * self.factor.T @ self._width_slope(self.landmarks) @ self.factor

    def _width_slope(self, x: Tensor) -> Tensor:
        """Return k' = ∂k(x, Z)/∂log σ², by ∂e/∂log σ² = -e."""
        exponent = self.kernel.exponents(x, self.landmarks).clamp_(max=0)
        return -exponent * self.kernel.jet(exponent.clone(), 1)[1]

    def check(self) -> None:
        """Check, at a few landmarks, that the features are a projection: none is longer than the kernel says."""
        if self.given_factor is None:
            return
        few = self.landmarks[:FEW]
        if not (self.diagonal(few) <= LONGER * self.kernel.diagonal(few)).all():
            raise ValueError("kernels: the factor of the landmarks is not that of their kernel")

    def error(self, points: Tensor | Rows) -> float:
        """Return the part of the trace that the features miss, on at most 5,000 rows."""
        rows = collectives.spread_here(points, ERROR_ROWS)
        own = torch.stack([self.table(rows).double().square().sum(), self.kernel.diagonal(rows).double().sum()])
        kept, whole = collectives.total(own).tolist()
        return max(0.0, 1.0 - kept / whole)

    def describe(self) -> str:
        """Return a one-line description."""
        return f"{self.kernel.describe()} by {len(self.landmarks)} landmarks"

    def describe_error(self, error: float) -> str:
        """Return a readable description of an error."""
        return f"Nyström features, {error:.2%} of the trace is missed"


def inverse_root(kernel: Pairwise, Z: Tensor) -> Tensor:
    """Return F with FFᵀ = K_ZZ⁺ in the precision of Z, from eigenvectors in float64."""
    K = kernel(Z.double(), Z.double())
    # Eigenvectors of nearby eigenvalues depend on rounding, and all processes must use the same ones.
    values, vectors = (collectives.of_first(part) for part in torch.linalg.eigh(0.5 * (K + K.T)))
    kept = values > CUT * torch.finfo(Z.dtype).eps * K.trace()
    return (vectors[:, kept] * values[kept].rsqrt()).flip(1).to(Z.dtype)
