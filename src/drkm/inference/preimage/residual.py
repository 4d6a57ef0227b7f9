"""The residual of a pre-image and its derivatives, for every family of kernels, in cache-sized blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from drkm.files.rows import Rows, mean_row, tiles
from drkm.gram.sweep import jets
from drkm.inference.preimage.descent import Derivatives
from drkm.inference.subspace import Components
from drkm.kernels import Explicit, Pairwise

#: with at most this many additional columns, sums with every component are computed instead of β
FEW_SUMS = 16


class Evaluation(Protocol):
    """A residual with its derivatives, one row per point."""

    def __call__(self, x: Tensor, coordinates: Tensor, beta: Tensor | None = None) -> Derivatives:
        """Evaluate it at x for the projections of these coordinates, whose weights β may be known."""


class Target(NamedTuple):
    """The residual as a function of x - origin, because small steps are lost in the rounding of large numbers.

    With a `basis` (d×r, orthonormal columns), a function of the coordinates of x - origin in it.
    """

    evaluate: Evaluation
    origin: Tensor
    basis: Tensor | None = None

    def inside(self, points: Tensor) -> Tensor:
        """Convert points to the coordinates of the residual."""
        return points - self.origin if self.basis is None else (points - self.origin) @ self.basis

    def outside(self, found: Tensor, begin: Tensor, start: Tensor) -> Tensor:
        """Convert results back to points; those that have not moved equal their start to the last digit."""
        if self.basis is None:
            return torch.where(found == begin, start, found + self.origin)
        unmoved = (found == begin).all(dim=1, keepdim=True)
        return torch.where(unmoved, start, found @ self.basis.T + self.origin)


def residual_of(components: Components, *, second_order: bool = False, in_span: bool = False) -> Target:
    """Return the residual without its constant, k(x, x) - 2 Σ β_i k(x, x_i), with its gradient.

    With `second_order` (kernels of distances) it also returns the Hessian. With `in_span` (kernels of distances and of
    dot products) it is a function of coordinates in the span of the training points, which also contains the gradients.
    """
    kernel = components.kernel
    match kernel:
        case Pairwise():
            # Kernels of distances depend only on differences.
            origin = mean_row(components.X) if kernel.is_isotropic else torch.zeros_like(components.X[:1][0])
            basis: Tensor | None = None
            if isinstance(components.X, Rows):
                return Target(_PairwiseTarget(components, kernel, components.X, origin, second_order), origin, basis)
            X = components.X - origin
            if in_span:
                basis, coordinates = torch.linalg.qr(X.T)
                X = coordinates.T
            return Target(_PairwiseTarget(components, kernel, X, origin, second_order), origin, basis)
        case Explicit():
            return Target(_explicit_target(components, kernel), torch.zeros_like(components.X[:1][0]))
    raise TypeError(
        f'method: "gradient" needs a kernel that can be differentiated, got {type(kernel).__name__}; '
        'use denoise with method="ridge"'
    )


class _PairwiseTarget:
    """The residual for k(x, y) = f(e): one sweep gives Σ β f, Σ β f' (1, x_i) and Σ β f'' (1, x_i, x_i x_iᵀ).

    Training points in a file are read in tiles by every sweep, where the `origin` is subtracted from them.
    """

    def __init__(self, components: Components, kernel: Pairwise, X: Tensor | Rows, origin: Tensor, second_order: bool):
        self.components, self.kernel, self.second_order = components, kernel, second_order
        self.origin = origin
        self.B = components.H
        if components.center:
            self.B = torch.cat([self.B, components.mean_weights[:, None]], dim=1)
        #: the file, or tables computed once from samples in memory
        self._source = X if isinstance(X, Rows) else [_Tables(kernel, X, self.B, second_order)]

    def tables(self) -> Iterable[_Tables]:
        """Return the tables of all training points, or yield those of one tile after another."""
        X = self._source
        if not isinstance(X, Rows):
            return X
        return (_Tables(self.kernel, X[rows] - self.origin, self.B[rows], self.second_order) for rows in tiles(X))

    def __call__(self, x: Tensor, coordinates: Tensor, beta: Tensor | None = None) -> Derivatives:
        """Evaluate the residual; `beta` is for samples in memory."""
        kernel = self.kernel
        if self.components.center:
            coordinates = torch.cat([coordinates, torch.ones_like(coordinates[:, :1])], dim=1)
        left = kernel.factors(x)[0]
        sums: list[Tensor] = []
        for tables in self.tables():
            more = tables.sums(left, coordinates, beta)
            sums = [whole.add_(part) for whole, part in zip(sums, more, strict=True)] if sums else more
        if kernel.is_isotropic:
            return self._isotropic(x, sums)
        scale = kernel.pull_scale
        norm2 = (x * x).sum(dim=1, keepdim=True)
        value, slope = kernel.jet(scale * norm2 + kernel.offset, 1)  # type: ignore[attr-defined]
        return Derivatives(value[:, 0] - 2 * sums[0][:, 0], 2 * scale * (slope * x - sums[1][:, 1:]))

    def _isotropic(self, x: Tensor, sums: list[Tensor]) -> Derivatives:
        """Return the residual for e = -‖x-y‖²/(2σ²), its curvature c = 2/σ² Σ_i β_i f'(e_i), and its gradient.

        The step x - gradient/c is the fixed-point iteration, for the RBF kernel (f' = k_1) equation (30) of the paper:

            x ← Σ_i β_i f'(e_i) x_i / Σ_i β_i f'(e_i)
        """
        scale = self.kernel.pull_scale
        value = self.kernel.diagonal(x) - 2 * sums[0][:, 0]
        curvature = 2 * scale * sums[1][:, 0]
        gradient = curvature[:, None] * x - 2 * scale * sums[1][:, 1:]
        if len(sums) == 2:
            return Derivatives(value, gradient, curvature)
        d = x.shape[1]
        total, mean, second = sums[2][:, 0], sums[2][:, 1 : 1 + d], sums[2][:, 1 + d :][:, _pairs(d, x.device)]
        # Σ β f'' (x_i - x)(x_i - x)ᵀ
        cross = (mean - 0.5 * total[:, None] * x)[:, :, None] * x[:, None, :]
        # The square of the scale may be outside the range of the precision, even if everything else is inside.
        hessian = -2 * scale * (scale * (second - cross - cross.mT))
        hessian.diagonal(dim1=1, dim2=2).add_(curvature[:, None])
        return Derivatives(value, gradient, curvature, hessian)


class _Tables:
    """Tables for sums over training points: right factors, monomials and coefficients."""

    def __init__(self, kernel: Pairwise, X: Tensor, B: Tensor, second_order: bool):
        self.kernel, d = kernel, X.shape[1]
        self.right = _right_factor(kernel, X)
        monomials = [torch.ones_like(X[:, :1]), X]
        if second_order:
            first, second = torch.triu_indices(d, d, device=X.device)
            monomials.append(X[:, first] * X[:, second])
        self.monomials = torch.cat(monomials, dim=1)
        #: the number of monomials that each derivative of f is summed with
        self.widths = (1, 1 + d, self.monomials.shape[1])[: 3 if second_order else 2]
        self.Bt = B.T.contiguous()
        # Sums with β are linear in the coordinates: with few components, sums with B_ic are cheaper than computing β
        # for every point.
        few = B.shape[1] * self.widths[-1] <= self.widths[-1] + FEW_SUMS
        self.table = (self.monomials[:, :, None] * B[:, None, :]).flatten(1) if few else None

    def sums(self, left: Tensor, coordinates: Tensor, beta: Tensor | None) -> list[Tensor]:
        """Return Σ_i β_i f(e_i) m(x_i) for each derivative f and its monomials m, one row per point."""
        sums = [left.new_empty(len(left), width) for width in self.widths]
        for rows, jet, (weights,) in jets(self.kernel, left, self.right, len(sums) - 1, spare=1):
            a, known = coordinates[rows], None if beta is None else beta[rows]
            if known is None and self.table is None:
                known = torch.mm(a, self.Bt, out=weights)
            self._sum(jet, a, known, [out[rows] for out in sums])
        return sums

    def _sum(self, jet: tuple[Tensor, ...], a: Tensor, beta: Tensor | None, out: list[Tensor]) -> None:
        for order, width in reversed(list(enumerate(self.widths))):
            f = jet[order]
            if order + 1 < len(jet) and f is jet[order + 1]:
                out[order].copy_(out[order + 1][:, :width])
            elif beta is not None:
                torch.mm(f.mul_(beta), self.monomials[:, :width], out=out[order])
            else:
                of_each = f @ self.table[:, : width * a.shape[1]]  # type: ignore[index]
                out[order].copy_(torch.einsum("mqc,mc->mq", of_each.view(len(a), width, -1), a))


def _pairs(d: int, device: torch.device) -> Tensor:
    """Return the index of the product of two coordinates among the second-order monomials."""
    first, second = torch.triu_indices(d, d, device=device)
    pair = torch.empty(d, d, dtype=torch.long, device=device)
    pair[first, second] = pair[second, first] = torch.arange(len(first), device=device)
    return pair


def _right_factor(kernel: Pairwise, X: Tensor) -> Tensor:
    """Return the transposed right factor of the samples, computed in tiles because copies would need most memory."""
    right = X.new_empty(kernel.factors(X[:1])[1].shape[1], len(X))
    for rows in tiles(X):
        right[:, rows] = kernel.factors(X[rows])[1].T
    return right


def _explicit_target(components: Components, kernel: Explicit) -> Evaluation:
    # A caller's inference mode would leave every map without gradients.
    with torch.inference_mode(False), torch.enable_grad():
        probe = kernel.features(components.X[:1].clone().requires_grad_())
    if not probe.requires_grad:
        raise TypeError(
            'method: "gradient" needs a kernel that can be differentiated, and this feature map carries no '
            'gradients; use denoise with method="ridge"'
        )

    def evaluate(x: Tensor, coordinates: Tensor, beta: Tensor | None = None) -> Derivatives:
        projection = components.projected_features(coordinates)
        with torch.no_grad():
            image = kernel.features(x)
            gradient = kernel.pullback(x)(2 * (image - projection))
        return Derivatives((image * (image - 2 * projection)).sum(dim=1).detach(), gradient.detach())

    return evaluate
