"""The kernel of Gram matrices that the caller has computed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drkm.kernels.base import Kernel, register


@register
@dataclass(frozen=True)
class Precomputed(Kernel):
    """The input is the kernel matrix itself: n×n for `fit`, m×n (new points against training points) afterwards.

    For the first layer only. There are no pre-images, because there is no input space.
    """

    name = "precomputed"
    is_given = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x`, whose entries are kernel values already."""
        return x

    def diagonal(self, x: Tensor) -> Tensor:
        """Return the diagonal of the Gram matrix."""
        return torch.diagonal(x)

    def resolve(self, points: Tensor, *, layer: int) -> Precomputed:
        """Check that the matrix is a Gram matrix."""
        if layer > 1:
            raise ValueError(
                f"kernel: a precomputed Gram matrix belongs in layer 1, got it in layer {layer}: "
                'name one kernel per layer, like ("precomputed", "rbf")'
            )
        if points.shape[0] != points.shape[1]:
            shape = "×".join(map(str, points.shape))
            raise ValueError(f"X: a precomputed Gram matrix must be square, got {shape}")
        asymmetry = (points - points.T).abs().max().item()
        if asymmetry > 1e-6 * points.abs().max().item():
            raise ValueError(
                f"X: a precomputed Gram matrix must be symmetric, got entries that differ by {asymmetry:.3g} "
                "(if by rounding, pass (X + X.T) / 2)"
            )
        # Only a necessary condition, but it tells distances from kernel values, and accepts the rounding errors that
        # centring in single precision leaves for a sample at the mean.
        length = points.diagonal().clamp(min=0).sqrt()
        if torch.outer(length, length).sub_(points.abs()).min().item() < -1e-3 * points.abs().max().item():
            raise ValueError(
                "X: a precomputed Gram matrix must be positive semi-definite, got entries with |k_ij|² > k_ii k_jj "
                "(distances are not kernel values)"
            )
        return self
