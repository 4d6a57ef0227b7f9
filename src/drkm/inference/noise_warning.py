"""A warning for models that remove little noise, measured by small changes of the points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from drkm.files.rows import Rows
from drkm.inference.inference import Inference

#: points that are changed, and the length of a change relative to the bandwidth σ
ROWS, LENGTH = 64, 0.02
#: minimum number of points for a reliable estimate
LEAST_ROWS = 20
#: a model that keeps this share of small changes does not denoise
MOST_NOISE = 0.9


class NoiseWarning(UserWarning):
    """Warns that a model leaves nearly all of the noise when it denoises."""


def noise_warning(inference: Inference, points: Tensor | Rows, columns: Sequence[int], method: str | None) -> str:
    """Return a warning, once per model, if denoising leaves most of the noise in points; else an empty string."""
    kernel = inference.fitted.kernels[0]
    if inference.noise_told or not kernel.is_isotropic or len(points) < LEAST_ROWS:
        return ""
    some = points[torch.arange(0, len(points), max(1, len(points) // ROWS), device=points.device)]
    share = share_passed(
        lambda rows: inference.reconstruct(rows, columns, method=method).points, some, kernel.bandwidth**0.5
    )
    inference.noise_told = True
    if share < MOST_NOISE:
        return ""
    return (
        f"ConstrDRKM: denoise lets {share:.0%} of small changes pass and removes little noise: its bandwidth and "
        "components were not chosen for that, drkm.denoise(X) and drkm.select(X) choose them"
    )


def share_passed(denoise: Callable[[Tensor], Tensor], points: Tensor, scale: float) -> float:
    """Return the share of small random changes that denoising keeps: 1 for a map that changes nothing.

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
