"""How much of the noise in points a denoiser lets pass, by small changes of the points."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

#: points that are changed, and the length of a change relative to the bandwidth σ
ROWS, LENGTH = 64, 0.02
#: fewer points say little
LEAST_ROWS = 20


def share_passed(denoise: Callable[[Tensor], Tensor], points: Tensor, scale: float) -> float:
    """Return which part of small random changes is still there after denoising: 1 for a map that changes nothing.

    Parameters
    ----------
    denoise : callable
    points : Tensor of shape (m, d)
    scale : float
        The bandwidth σ of the kernel.
    """
    rows = points[:: max(1, len(points) // ROWS)]
    change = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(rows)
    change *= LENGTH * scale / change.norm(dim=1, keepdim=True)
    moved = denoise(torch.cat([rows + change, rows - change]))
    passed = (moved[: len(rows)] - moved[len(rows) :]) * change
    return float(passed.sum() / (2 * change.square().sum()))
