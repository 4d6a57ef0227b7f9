"""Estimation of isotropic Gaussian noise in samples, without clean data and without labels."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drkm.machine.layout import copied
from drkm.training.parameters import array

#: maximum number of samples for estimating the width of a mixture
MAX_POINTS = 3000
#: with more samples than this, one half predicts the other; with fewer, each of this many parts is predicted by the
#: others: with halves of 1,200 points on 13 plane curves the width was too large by 0.06 on average
MANY, FOLDS = 1500, 5
#: maximum number of mixture centres on one half
MAX_PLACES = 750
#: steps towards the most likely weights, with halves and with parts; with fewer steps, weights follow the sample less
#: closely: on one draw of seven curves widths by parts were 0.98, 1.00 and 1.02 of the truth after 30, 50 and 100
STEPS, STEPS_OF_PARTS = 100, 50
#: levels on either side of the best one of one part that are compared on all parts
NEAR = 2
#: ratio of neighbouring noise levels that are tried
RATIO = 1.12
#: minimum log-likelihood of a test point, so that outliers do not dominate, and the maximum share of points with it
FLOOR = -100.0
BEYOND_REACH = 0.25
#: the share of eigenvalues and columns that estimate the noise, and the mean of the same share of normal numbers
LOWEST, LOWEST_OF_NORMAL = 0.25, 1.271
#: with fewer noise-like directions, their variance is assumed to be this many times that of the noise
FEW_DIRECTIONS, TYPICAL_EXCESS = 10, 1.3
#: this many directions are a noise floor if the next eigenvalue is this many times larger than the largest that noise
#: may have, and if the mixture finds no structure below that share of its level
FLOOR_DIRECTIONS, GAP, STRUCTURE = 3, 1.5, 0.75
#: the same as SLACK below a gap
FLOOR_SLACK = 1.05
#: by how much an eigenvalue of noise may exceed the edge of the law
SLACK = 1.02
#: samples per dimension up to which the eigenvalues of noise are far from equal
FEW = 2


#: noise below this fraction of the largest deviation is rounding
LEAST_NOISE = 1e-6
#: noise above this multiple of the largest deviation cannot be that of these samples
MOST_NOISE = 100.0
#: beyond this distance between samples, squares of squared errors overflow
LARGEST = 1e70
NO_NOISE = (
    "noise: half of the directions of X do not vary, so none is found, and candidates that smooth least win; "
    "give it as a number, or leave columns out"
)


class Level(NamedTuple):
    """The standard deviation of the noise, one or one per column, and whether it comes from the smallest variances.

    The smallest variances include whatever else varies there, so that such a level may be too large.
    """

    sigma: float | np.ndarray
    may_be_less: bool = False


def noise_level(noise: Any, samples: np.ndarray) -> Level:
    """Return the given noise level, one or one per column, or an estimate."""
    expected = 'noise: expected a positive number, one per column, or "auto"'
    if isinstance(noise, str):
        if noise != "auto":
            raise ValueError(f"{expected}, got {noise!r}")
        return estimated_level(samples)
    if isinstance(noise, Real):
        if isinstance(noise, bool) or not 0 < float(noise) < math.inf:
            raise ValueError(f"{expected}, got {noise!r}")
        return _within_reach(Level(float(noise)), samples)
    try:
        levels = array("noise", noise).numpy(force=True)
    except TypeError as error:
        raise ValueError(f"{expected}, got {noise!r}") from error
    if levels.shape != samples.shape[1:]:
        raise ValueError(f"{expected}, got an array of shape {levels.shape} for {samples.shape[1]} columns")
    if not (np.isfinite(levels) & (levels >= 0)).all() or not levels.any():
        wrong = levels[~(np.isfinite(levels) & (levels >= 0))]
        raise ValueError(f"{expected}, got {float(wrong[0]) if wrong.size else 'zeros alone'}")
    return _within_reach(Level(levels), samples)


def _within_reach(level: Level, samples: np.ndarray) -> Level:
    """Refuse noise far above the spread of the samples, which noise cannot exceed by much."""
    varies, most = float(samples.std(axis=0).max()), float(np.max(level.sigma))
    if most > MOST_NOISE * varies:
        raise ValueError(f"noise: expected that of the samples, which vary by {varies:.3g} at most, got {most:.3g}")
    return level


def is_rounding(noise: float | np.ndarray, samples: np.ndarray) -> bool:
    """Return whether the noise is negligible compared with the spread of the samples."""
    return bool(np.max(noise) <= LEAST_NOISE * samples.std(axis=0).max())


def noise_of_repeats(first: Any, second: Any, *more: Any) -> np.ndarray:
    """Return the standard deviation of the noise of each column from repeated measurements of the same samples.

    Parameters
    ----------
    first, second, *more : arrays of shape (m, d)
        Row i of each array is one measurement of the same sample; split m measurements of a single sample into two
        halves.
    """
    repeats = [array("repeats", part).numpy(force=True) for part in (first, second, *more)]
    if any(part.ndim != 2 or part.shape != repeats[0].shape for part in repeats):
        raise ValueError(f"repeats: expected arrays of one shape (m, d), got {[part.shape for part in repeats]}")
    return np.sqrt(np.var(repeats, axis=0, ddof=1).mean(axis=0))


def noise_of_region(values: Any) -> float:
    """Return the standard deviation of noise from values that would be constant without it, such as an empty corner.

    Parameters
    ----------
    values : array of shape (n, k)
        The columns of the region, for all samples; the constant may differ between columns.
    """
    region = array("values", values).numpy(force=True)
    if region.ndim != 2 or len(region) < 2:
        raise ValueError(f"values: expected the region of at least 2 samples as rows, got shape {region.shape}")
    return float(np.sqrt(region.var(axis=0, ddof=1).mean()))


def estimate_noise(X: Any, *, random_state: int = 0) -> float:
    """Return the standard deviation of the noise in each coordinate.

    Clean points plus noise of standard deviation σ have a density that is a mixture of Gaussians of that width. The
    estimate is the width at which such a mixture, with free weights on some of the points, best explains held-out
    points: wider mixtures cannot follow the data, narrower ones overfit the sample. It assumes clean points on a set of
    lower dimension (curves, clusters, surfaces) and samples dense enough that neighbours are not farther apart than the
    noise; otherwise it is too large. In many dimensions this fails, and the smallest variances are used if they are
    smaller: those of principal directions, as far as they look like pure noise, and those of columns. If a gap in the
    spectrum separates three or more directions, only these are used. Such an estimate is too large if the clean points
    vary in all directions. Constant columns are ignored.
    """
    samples = array("X", X).numpy(force=True)
    if samples.ndim != 2 or len(samples) < 2 or not np.isfinite(samples).all():
        raise ValueError(f"X: expected at least 2 samples as rows of finite numbers, got shape {samples.shape}")
    return float(estimated_level(samples, random_state=random_state).sigma)


def estimated_level(X: np.ndarray, *, random_state: int = 0) -> Level:
    """Return the result of `estimate_noise`, and whether it comes from the smallest variances."""
    points = copied(np.asarray(X), np.float64)
    points = points[:, (points != points[0]).any(dim=0)]
    if not points.numel():
        return Level(0.0)
    generator = torch.Generator().manual_seed(random_state)
    points = points[torch.randperm(len(points), generator=generator)][:MAX_POINTS]
    ceiling = _median_variance(points) ** 0.5
    if ceiling == 0 or len(points) < 8:
        return Level(ceiling, may_be_less=True)
    mixture = _mixture_width(points, ceiling)
    variance, is_floor = _least_variance(points)
    if is_floor and mixture > STRUCTURE * variance**0.5:
        return Level(variance**0.5, may_be_less=True)
    least = min(variance, _least_column(points)) ** 0.5
    return Level(min(mixture, least), may_be_less=least <= mixture)


def _mixture_width(points: Tensor, ceiling: float) -> float:
    """Return the width at which a mixture of Gaussians on some of the points explains the others best."""
    parts = _Parts(points)
    levels, scores = [ceiling], [parts.score(ceiling, 1)]
    # Decrease the width until the likelihood is well below its maximum: it has one peak.
    while math.isfinite(scores[-1]) and scores[-1] >= max(scores) - 0.05 and len(levels) < 80:
        levels.append(levels[-1] / RATIO)
        scores.append(parts.score(levels[-1], 1))
    best = int(np.argmax(scores))
    if parts.count > 1:
        levels = levels[max(best - NEAR, 0) : best + NEAR + 1]
        scores = [parts.score(level, parts.count) for level in levels]
        best = int(np.argmax(scores))
    if not 0 < best < len(levels) - 1 or not math.isfinite(scores[best + 1]):
        return levels[best]
    left, top, right = scores[best - 1 : best + 2]
    shift = 0.5 * (left - right) / (left - 2 * top + right)
    return levels[best] * RATIO**-shift


class _Parts:
    """Parts of some points, each of which is predicted by mixtures on the others."""

    def __init__(self, points: Tensor):
        self.dimension = points.shape[1]
        self.distances = torch.cdist(points, points).square()
        is_many = len(points) > MANY
        self.count = 1 if is_many else FOLDS
        self.steps, self.places = (STEPS, MAX_PLACES) if is_many else (STEPS_OF_PARTS, len(points))
        self.part = (1 + torch.arange(len(points))) % (2 if is_many else FOLDS)

    def score(self, width: float, count: int) -> float:
        """Return the mean log-likelihood of the first `count` parts under mixtures of this width."""
        found = [self._log_likelihood(self.part == k, width) for k in range(count)]
        return float(np.mean(found)) - self.dimension * math.log(width)

    def _log_likelihood(self, is_test: Tensor, width: float) -> float:
        """Return the log-likelihood of one part, without the factor width^-d.

        It is -inf if many points are out of reach of the mixture: at the floor only that factor would count.
        """
        places = (~is_test).nonzero().squeeze(1)[: self.places]
        K = torch.exp(self.distances[~is_test][:, places] / (-2 * width**2))
        weight = K.new_full((K.shape[1],), 1.0 / K.shape[1])
        tiny = torch.finfo(K.dtype).tiny
        for _ in range(self.steps):
            weight = weight * (K.T @ (K @ weight).clamp(min=tiny).reciprocal()) / len(K)
        # In logarithms, for test points out of reach of the kernel.
        exponents = self.distances[is_test][:, places] / (-2 * width**2)
        reached = torch.logsumexp(exponents + weight.clamp(min=tiny).log(), dim=1).clamp(min=FLOOR)
        return float(reached.mean()) if float((reached <= FLOOR).double().mean()) <= BEYOND_REACH else -math.inf


def _median_variance(points: Tensor) -> float:
    """Return the median eigenvalue of the covariance, which a few directions of the data do not change.

    Few samples spread the eigenvalues of noise, and fewer than dimensions leave some at 0. The median of the others is
    then relative to that of noise of variance 1, whose eigenvalues follow the Marchenko-Pastur law.
    """
    n, d = points.shape
    if n > FEW * d:
        return float(torch.linalg.eigvalsh(torch.cov(points.T).reshape(d, d)).clamp(min=0).median())
    centred = points - points.mean(dim=0)
    rank, most = sorted((n - 1, d))
    spectrum = torch.linalg.svdvals(centred)[:rank].square() / most
    return float(spectrum.median()) / _median_of_noise(rank / most) if rank else 0.0


def _least_variance(points: Tensor) -> tuple[float, bool]:
    """Estimate the noise variance from the smallest eigenvalues of the covariance, and whether they are a noise floor.

    The first k eigenvalues are attributed to the data, where k is the smallest number for which the largest of the
    others is consistent with pure noise under the Marchenko-Pastur law. The level is that of the lowest quarter of
    these, because eigenvalues of the data that no test can distinguish from noise are above it. Below a gap there are
    none of those, and all directions are used.
    """
    n, d = len(points) - 1, points.shape[1]
    centred = points - points.mean(dim=0)
    values = torch.linalg.svdvals(centred)[: min(n, d)].square()
    level, few = math.inf, 0
    for k in range(len(values)):
        few, many = sorted((n - k, d - k))
        rest = values[k:] / many
        # With as many samples as dimensions the lowest eigenvalues are nearly 0 and carry little information.
        lowest = max(1, round((LOWEST if 2 * few <= many else 0.5) * few))
        level = float(rest[-lowest:].mean()) / _mean_of_noise(few / many, lowest / few)
        upper = (1 + math.sqrt(few / many)) ** 2
        edge = float(rest.mean()) * upper
        is_above = d <= n and k > 0 and float(values[k - 1]) / many >= GAP * edge
        if is_above and few >= FLOOR_DIRECTIONS and float(rest[0]) <= FLOOR_SLACK * edge:
            return float(rest.mean()), True
        if float(rest[0]) <= SLACK * level * upper:
            break
    # Eigenvalues of tables decrease gradually, and the last of them are hardly ever pure noise: with few columns the
    # variance was 1 to 1.8 times too large.
    return (level if few >= FEW_DIRECTIONS or d > n else level / TYPICAL_EXCESS), False


def _least_column(points: Tensor) -> float:
    """Estimate the noise variance from the quarter of the columns with the smallest variances."""
    n, d = points.shape
    variances = points.var(dim=0).sort().values[: max(1, round(LOWEST * d))]
    # The expected mean of the lowest sample variances of noise, by their normal approximation.
    share = 1 - (LOWEST_OF_NORMAL if d >= 4 else 0.0) * math.sqrt(2 / (n - 1))
    return float(variances.mean()) / share if share > 0.5 else math.inf


def _law_of_noise(ratio: float) -> tuple[Tensor, Tensor]:
    """Return ascending values of the Marchenko-Pastur law and their probabilities, for a ratio of at most 1."""
    angle = (torch.arange(4096, dtype=torch.float64) + 0.5) * (math.pi / 4096)
    value = 1 + ratio - 2 * ratio**0.5 * angle.cos()
    density = angle.sin().square() / value
    return value, density / density.sum()


def _median_of_noise(ratio: float) -> float:
    """Return the median of the Marchenko-Pastur law."""
    value, probability = _law_of_noise(ratio)
    return float(value[torch.searchsorted(probability.cumsum(dim=0), 0.5)])


def _mean_of_noise(ratio: float, part: float) -> float:
    """Return the mean of the lowest part of the Marchenko-Pastur law."""
    value, probability = _law_of_noise(ratio)
    lowest = probability.cumsum(dim=0) <= part + 1e-9
    return float((value * probability)[lowest].sum() / probability[lowest].sum())
