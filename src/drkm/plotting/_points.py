"""Points in the plane, before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from drkm.plotting._style import BLUE, GREY, VERMILION, bare


def scatter_before_after(
    axes: Any, noisy: np.ndarray, denoised: np.ndarray, title: str = "", clean: np.ndarray | None = None
) -> None:
    """Draw noisy points small and grey, denoised ones larger and blue, and the true curve as a thin line of dots."""
    axes.scatter(*noisy.T, s=2, color=GREY, linewidths=0, label="noisy", rasterized=True)
    if clean is not None:
        axes.scatter(*clean.T, s=0.5, color=VERMILION, linewidths=0, label="true curve", rasterized=True)
    axes.scatter(*denoised.T, s=5, color=BLUE, linewidths=0, label="denoised", rasterized=True)
    axes.set_aspect("equal")
    bare(axes)
    axes.set_title(title)
