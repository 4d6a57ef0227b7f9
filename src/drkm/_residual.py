"""The residual of a pre-image and its gradient, for every family of kernels, in blocks of the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from drkm._descent import Evaluation
from drkm.gram.sweep import BLOCK_ENTRIES
from drkm.kernels import DotProduct, Explicit, Isotropic, Pairwise

if TYPE_CHECKING:
    from drkm.preimage import Components


def residual_of(components: Components) -> Callable[[Tensor, Tensor], Evaluation]:
    """Return the residual without its constant, k(x, x) - 2 Σ β_i k(x, x_i), with its gradient."""
    kernel = components.kernel
    if isinstance(kernel, Isotropic | DotProduct):
        return _PairwiseTarget(components, kernel)
    if isinstance(kernel, Explicit):
        return _explicit_target(components, kernel)
    raise TypeError(
        f'method: "gradient" needs a kernel that can be differentiated, got {type(kernel).__name__}; use method="ridge"'
    )


class _PairwiseTarget:
    """The residual for k(x, y) = f(e): one sweep gives Σ β f, Σ β f' and Σ β f' x_i for a block of points."""

    def __init__(self, components: Components, kernel: Pairwise):
        self.components, self.kernel = components, kernel
        isotropic = kernel.is_isotropic
        self.origin = components.X.mean(dim=0) if isotropic else torch.zeros_like(components.X[0])
        X = components.X - self.origin
        self.right = kernel.factors(X)[1].T.contiguous()
        ones = torch.ones_like(X[:, :1])
        self.augmented = torch.cat([X, ones], dim=1)
        self.B = components.H
        if components.center:
            self.B = torch.cat([self.B, components.mean_weights[:, None]], dim=1)
        self.Bt = self.B.T.contiguous()
        d, c = X.shape[1], self.B.shape[1]
        # Σ_i β_i f'(e_i) x_i is linear in the coordinates: with few components, sums with B_ic x_i come
        # cheaper than forming β for every point.
        self.table = (self.B[:, :, None] * self.augmented[:, None, :]).flatten(1) if c * d <= d + 16 else None

    def __call__(self, points: Tensor, coordinates: Tensor) -> Evaluation:
        kernel, isotropic = self.kernel, self.kernel.is_isotropic
        x = points - self.origin
        if self.components.center:
            coordinates = torch.cat([coordinates, torch.ones_like(coordinates[:, :1])], dim=1)
        left = kernel.factors(x)[0]
        S, pull = x.new_empty(len(x)), x.new_empty(len(x), x.shape[1] + 1)
        # Blocks reuse the same memory: fresh pages would cost as much as the arithmetic.
        parts = blocks(len(x), self.components.n, x)
        height = parts[0].stop if parts else 0
        exponents, weights = (x.new_empty(height, self.components.n) for _ in range(2))
        for rows in parts:
            a = coordinates[rows]
            value, slope = kernel.jet(torch.mm(left[rows], self.right, out=exponents[: len(a)]), 1)
            if self.table is not None:
                sums = (slope @ self.table).view(len(a), a.shape[1], -1)
                pull[rows] = torch.einsum("mc,mcd->md", a, sums)
                S[rows] = pull[rows][:, -1] if value is slope else ((value @ self.B) * a).sum(dim=1)
            else:
                beta = torch.mm(a, self.Bt, out=weights[: len(a)])
                if value is not slope:
                    S[rows] = (beta * value).sum(dim=1)
                torch.mm(beta.mul_(slope), self.augmented, out=pull[rows])
                if value is slope:
                    S[rows] = pull[rows, -1]
        scale = kernel.pull_scale
        if isotropic:
            gradient = -2 * scale * (pull[:, :-1] - pull[:, -1:] * x)
            return Evaluation(kernel.diagonal(x) - 2 * S, gradient, 2 * scale * pull[:, -1])
        norm2 = (x * x).sum(dim=1, keepdim=True)
        value, slope = kernel.jet(scale * norm2 + kernel.offset, 1)  # type: ignore[attr-defined]
        return Evaluation(value[:, 0] - 2 * S, 2 * scale * (slope * x - pull[:, :-1]), None)


def _explicit_target(components: Components, kernel: Explicit) -> Callable[[Tensor, Tensor], Evaluation]:
    with torch.enable_grad():
        probe = kernel.features(components.X[:1].clone().requires_grad_())
    if not probe.requires_grad:
        raise TypeError(
            'method: "gradient" needs a kernel that can be differentiated, and this feature map carries no '
            'gradients; use method="ridge"'
        )

    def evaluate(points: Tensor, coordinates: Tensor) -> Evaluation:
        projection = components.projected_features(coordinates)
        with torch.no_grad():
            image = kernel.features(points)
            gradient = kernel.pullback(points)(2 * (image - projection))
        return Evaluation((image * (image - 2 * projection)).sum(dim=1).detach(), gradient.detach(), None)

    return evaluate


def blocks(m: int, n: int, like: Tensor) -> list[slice]:
    """Return slices of m rows such that a block of kernel values stays in the processor's cache."""
    rows = max(16, BLOCK_ENTRIES["cuda" if like.is_cuda else "cpu"] // max(n, 1))
    return [slice(i, min(i + rows, m)) for i in range(0, m, rows)]
