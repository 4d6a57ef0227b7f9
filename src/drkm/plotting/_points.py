"""Figures of points in the plane before and after denoising."""

from __future__ import annotations

from typing import Any

import numpy as np

from drkm.plotting._model import numbers
from drkm.plotting._style import BLUE, GREY, VERMILION, bare, canvas, style


def scatter_before_after(axes: Any, noisy: Any, denoised: Any, title: str = "", clean: Any = None) -> None:
    """Draw noisy points small and grey, denoised ones larger and blue, and the true curve as small dots."""
    axes.scatter(*numbers(noisy).T, s=2, color=GREY, linewidths=0, label="noisy", rasterized=True)
    if clean is not None:
        axes.scatter(*numbers(clean).T, s=0.5, color=VERMILION, linewidths=0, rasterized=True)
        axes.plot([], [], color=VERMILION, linewidth=1, label="true curve")
    axes.scatter(*numbers(denoised).T, s=5, color=BLUE, linewidths=0, label="denoised", rasterized=True)
    axes.set_aspect("equal")
    bare(axes)
    axes.set_title(title)


def plot_cleaning(before: Any, after: Any, axes: Any = None) -> Any:
    """Draw samples before and after denoising, in the plane in which the denoised ones vary most."""
    before, after = numbers(before), numbers(after)
    mean = np.zeros(2) if after.shape[1] == 2 else after.mean(axis=0)
    plane = np.eye(2) if after.shape[1] == 2 else np.linalg.svd(after - mean, full_matrices=False)[2][:2].T
    points = [(part - mean) @ plane for part in (before, after)]
    if points[0].shape[1] == 1:
        points = [np.column_stack([part, np.arange(len(part)) / len(part)]) for part in points]
    with style():
        figure, (sides,) = canvas(axes, 1, 2, (6.4, 2.8), sharex=True, sharey=True, layout="constrained")
        for axis, part, title, colour in zip(sides, points, ("before", "after"), (GREY, BLUE), strict=True):
            axis.scatter(*part.T, s=4, color=colour, linewidths=0)
            axis.set_title(title)
            axis.set_aspect("equal")
            axis.set_xlabel("first column" if after.shape[1] == 2 else "first principal axis")
        sides[0].set_ylabel("second column" if after.shape[1] == 2 else "second principal axis")
    return figure
