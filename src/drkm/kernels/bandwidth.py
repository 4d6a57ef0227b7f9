"""Rules that turn data into a bandwidth σ²."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from drkm import reduction

RULES = ("auto", "median", "scale")
MEDIAN_ROWS = 2000


def check_bandwidth(sigma2: float | str) -> float | str:
    """Return the bandwidth, or raise one sentence that says what is allowed."""
    if isinstance(sigma2, str):
        if sigma2 not in RULES:
            raise ValueError(f"sigma2: unknown rule {sigma2!r}, allowed are {', '.join(RULES)} or a positive number")
        return sigma2
    if isinstance(sigma2, bool) or not isinstance(sigma2, Real):
        raise TypeError(f"sigma2: expected a positive number or one of {', '.join(RULES)}, got {sigma2!r}")
    if not (math.isfinite(sigma2) and sigma2 > 0):
        raise ValueError(f"sigma2: expected a positive finite number, got {sigma2}")
    return float(sigma2)


def resolve_bandwidth(sigma2: float | str, points: Tensor, *, layer: int) -> float:
    """Return σ² as a number.

    "median" is half the median squared distance, on at most 2,000 evenly spaced rows. "scale" is the mean squared
    distance of centred points, and 2s/n above the first layer, where the s columns are orthonormal whatever the
    solver does, so that it is a constant. "auto" is "median" in layer 1 and "scale" above.
    """
    if not isinstance(sigma2, str):
        return sigma2
    rule = ("median" if layer == 1 else "scale") if sigma2 == "auto" else sigma2
    n = reduction.samples(len(points))
    if rule == "median":
        if layer > 1:
            raise ValueError(
                f'sigma2: "median" needs inputs that do not move, got it in layer {layer}; '
                'deep layers take "scale" or a positive number'
            )
        return _positive(_half_median(points), points)
    if layer > 1:
        return 2.0 * points.shape[1] / n
    return _positive(2.0 * _spread(points), points)


def _half_median(points: Tensor) -> float:
    rows = reduction.spread_rows(points, MEDIAN_ROWS).double()
    rows = rows - rows.mean(dim=0)
    # By products: with thousands of features ten times faster than differences, and in float64 as exact.
    inner = rows @ rows.T
    norms = inner.diagonal()
    above = torch.ones_like(inner, dtype=torch.bool).triu(diagonal=1)
    return (0.5 * (norms[:, None] + norms) - inner)[above].clamp(min=0).median().item()


def _positive(value: float, points: Tensor) -> float:
    """Fall back to the scale of the data where a rule gives 0: duplicated or constant samples."""
    if value > 0:
        return value
    spread = _spread(points)
    return spread if spread > 0 else 1.0


def _spread(points: Tensor) -> float:
    """Return the mean squared distance to the mean."""
    centred = points - reduction.mean(points)
    return reduction.total(centred.square().sum()).item() / reduction.samples(len(points))
