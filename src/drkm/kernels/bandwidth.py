"""Rules that turn data into a bandwidth σ²."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from drkm.arrays.forms import WORST_ROUNDING
from drkm.distributed import collectives
from drkm.files.rows import tiles
from drkm.machine import pages
from drkm.validation import checks
from drkm.wording import dtype_name

RULES = ("auto", "median", "scale")
MEDIAN_ROWS = 2000
#: rows of distances that are formed at once
BLOCK_ROWS = 128
#: distances below this many rounding errors of the mean count as zero: equal samples differ by as much after centring
ROUNDING = 2
#: number of points over which the error of k(x, x) is averaged
DIGITS_ROWS = 200


def check_bandwidth(sigma2: float | str) -> float | str:
    """Return the bandwidth if it is valid, or raise an error that says what is allowed."""
    if isinstance(sigma2, str):
        if sigma2 not in RULES:
            raise ValueError(f"sigma2: unknown rule {sigma2!r}, allowed are {', '.join(RULES)} or a positive number")
        return sigma2
    if isinstance(sigma2, bool) or not isinstance(sigma2, Real):
        raise TypeError(f"sigma2: expected a positive number or one of {', '.join(RULES)}, got {sigma2!r}")
    if not (checks.is_finite(sigma2) and sigma2 > 0):
        raise ValueError(f"sigma2: expected a positive finite number, got {sigma2}")
    return float(sigma2)


def resolve_bandwidth(sigma2: float | str, points: Tensor, *, layer: int) -> float:
    """Return σ² as a number, computed from the points if it is given as a rule.

    "median" is half the median squared distance, on at most 2,000 evenly spaced rows. "scale" is the mean squared
    distance of centred points. Above the first layer it is 2s/n, a constant, because the s columns of the codes are
    orthonormal whatever the solver does. "auto" is "median" in layer 1 and "scale" above.
    """
    if not isinstance(sigma2, str):
        return sigma2
    rule = ("median" if layer == 1 else "scale") if sigma2 == "auto" else sigma2
    n = collectives.samples(len(points))
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


def check_rounding(sigma2: float, points: Tensor, *, layer: int, told: str = "") -> None:
    """Raise an error if σ² is so narrow compared with the spread of the points that rounding hides close neighbours.

    `told` is how the error begins if the caller gave the width in another way.
    """
    norms = _squared_norms(points, layer)
    error = _rounding(sigma2, points, norms)
    if error > WORST_ROUNDING:
        length = norms.mean().sqrt().item()
        if layer > 1:
            spread, remedy = f"codes whose length is about {length:.3g}", f"widen that of layer {layer}"
        else:
            spread, remedy = f"samples that are {length:.3g} from their mean", "widen it or bring outliers in"
        kind = dtype_name(points.dtype)
        more_digits = ', or take dtype="float64"' if kind == "float32" else ""
        raise ValueError(
            f"{told or f'sigma2: {sigma2:.3g}'} is too narrow in {kind} for {spread}, rounding changes kernel values "
            f"by {error:.0%}; {remedy}{more_digits}"
        )


def rounding_of_samples(sigma2: float, points: Tensor) -> float:
    """Return the mean error of k(x, x) of samples; `check_rounding` refuses more than `WORST_ROUNDING`."""
    return _rounding(sigma2, points, _squared_norms(points, 1))


def _rounding(sigma2: float, points: Tensor, norms: Tensor) -> float:
    """Return the mean error of k(x, x).

    Distances are computed as ‖x‖² + ‖y‖² - 2x·y, with a rounding error proportional to ‖x‖².
    """
    return (torch.finfo(points.dtype).eps / sigma2 * norms).clamp(max=1).mean().item()


def _squared_norms(points: Tensor, layer: int) -> Tensor:
    """Return ‖x‖² of some centred samples, or the mean square s/n of codes, which change during training."""
    if layer > 1:
        return torch.tensor([points.shape[1] / collectives.samples(len(points))], dtype=torch.float64)
    rows = collectives.spread_rows(points, DIGITS_ROWS).double()
    return (rows - rows.mean(dim=0)).square().sum(dim=1)


def _half_median(points: Tensor) -> float:
    rows = collectives.spread_rows(points, MEDIAN_ROWS).double()
    mean = rows.mean(dim=0)
    rows = rows - mean
    # From inner products: with thousands of features ten times faster than from differences, and as exact in float64.
    inner = torch.mm(rows, rows.T, out=pages.for_a_while(len(rows) ** 2, rows).view(len(rows), len(rows)))
    # Everything in the memory of the products: otherwise the memory of a small fit would peak here.
    del rows
    norms = inner.diagonal().clone()
    for some in torch.arange(len(inner), device=inner.device).split(BLOCK_ROWS):
        inner[some] = (norms[some, None] + norms).mul_(0.5).sub_(inner[some])
    flat, used = inner.view(-1), 0
    for i, row in enumerate(inner, start=1):
        above = row[i:].clone()
        flat[used : used + len(above)] = above
        used += len(above)
    return _beyond_rounding(_median(flat[:used].clamp_(min=0)), mean)


def _median(values: Tensor) -> float:
    """Return the lower median and reorder the values: torch.median would copy them."""
    if values.is_cuda or len(values) == 0 or values.max().isnan():
        return values.median().item()
    middle = (len(values) - 1) // 2
    array = values.numpy()
    array.partition(middle)
    return float(array[middle])


def _positive(value: float, points: Tensor) -> float:
    """Return the value, or the scale of the data if a rule gave 0, as for duplicated or constant samples."""
    value = value or _spread(points)
    if not value and _are_equal(points):
        return 1.0
    check_range("squared distances", value, points.dtype)
    return value


def check_range(name: str, value: float, dtype: torch.dtype) -> None:
    """Raise an error if squares are outside the range of a precision."""
    limits = torch.finfo(dtype)
    if not limits.tiny <= value <= limits.max:
        kind = dtype_name(dtype)
        size = "small" if value < 1 else "large"
        raise ValueError(f"X: {name} are too {size} for {kind}, divide the data by their typical size")


def mean_square(points: Tensor) -> float:
    """Return the mean of ‖x‖², or raise an error if it is outside the range of the points' precision."""
    own = torch.stack([points[rows].square().sum() for rows in tiles(points)]).sum()
    mean = collectives.total(own).item() / collectives.samples(len(points))
    if collectives.agreed(points.abs().max().item()):
        check_range("squared lengths", mean, points.dtype)
    return mean


def _are_equal(points: Tensor) -> bool:
    """Whether all points are equal up to rounding, judged by differences that are not squared."""
    mean = collectives.mean(points)
    apart = collectives.agreed(max((points[rows] - mean).abs().max().item() for rows in tiles(points)))
    # The largest difference of one entry that a mean squared distance within rounding of ‖mean‖² allows.
    entries = collectives.samples(len(points)) * points.shape[1]
    return apart <= ROUNDING * torch.finfo(points.dtype).eps * math.sqrt(entries) * mean.abs().max().item()


def _spread(points: Tensor) -> float:
    """Return the mean squared distance to the mean."""
    mean = collectives.mean(points)
    own = torch.stack([(points[rows] - mean).square_().sum() for rows in tiles(points)]).sum()
    spread = collectives.total(own).item() / collectives.samples(len(points))
    return _beyond_rounding(spread, mean)


def _beyond_rounding(squared: float, mean: Tensor) -> float:
    rounding = (ROUNDING * torch.finfo(mean.dtype).eps) ** 2 * mean.square().sum().item()
    return 0.0 if squared <= rounding < math.inf else squared
