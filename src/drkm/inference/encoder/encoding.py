"""The result of an encoder."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

#: a relative residual above this cannot be explained by rounding or tolerance
UNSETTLED = 1e-3


class Encoding(NamedTuple):
    """Codes with measures of their quality.

    Attributes
    ----------
    codes : Tensor of shape (m, S)
    residual : Tensor of shape (m,)
        Norm of the gradient of ψ relative to that of its parts.
    ambiguous : Tensor of bool, shape (m,), or None
        Whether the codes of the second nearest training sample lead to another minimum of ψ.
    strange : Tensor of bool, shape (m,), or None
        Whether the point is unlike all training samples (`drkm.strange_data`), so that its codes say little; None from
        an encoder alone, which has kernel values but not the points.
    unbounded : Tensor of bool, shape (m,), or None
        Whether ψ has no minimum for the point, as at a saddle point of J and after fits that did not converge: `codes`
        are then those of the nearest training sample. None from the paper's formulas alone.
    """

    codes: Tensor
    residual: Tensor
    ambiguous: Tensor | None
    strange: Tensor | None = None
    unbounded: Tensor | None = None

    def doubt(self) -> str:
        """Return a warning if some codes are far from stationary, as after a fit that did not converge, else ""."""
        total, lost = len(self.residual), 0 if self.unbounded is None else int(self.unbounded.sum())
        if lost:
            return (
                f"codes of {lost} of {total} points are not determined, they are those of the nearest samples: fit to "
                "convergence or, if that was a saddle point of J, where multipliers_ has positive eigenvalues, change "
                "the start or sigma2, or take fewer components; see encode(X).unbounded"
            )
        count = int((self.residual > UNSETTLED).sum())
        if not count:
            return ""
        return (
            f"codes of {count} of {total} points are not stationary (largest residual "
            f"{float(self.residual.max()):.2g}): fit to convergence, and see encode(X).residual"
        )
