"""How much isotropic Gaussian noise is in a sample, without clean data and without labels."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from drkm.machine.layout import copied

#: samples used to fit, to test, and as places of the mixture
MAX_POINTS = 1500
MAX_PLACES = 750
EM_STEPS = 100
#: ratio of neighbouring noise levels that are tried
RATIO = 1.12
#: least log-likelihood of a test point, so that outliers do not decide, and the largest part of points that may have it
FLOOR = -100.0
BEYOND_REACH = 0.25
#: samples a dimension up to which the eigenvalues of noise are far from equal
FEW = 2


def estimate_noise(X: np.ndarray, *, random_state: int = 0) -> float:
    """Return the standard deviation of the noise in each coordinate.

    A sample of clean points plus noise of standard deviation σ has a density that is a mixture of Gaussians of
    that width. The estimate is the width at which such a mixture, with free weights on some of the points,
    explains points held out best: wider ones cannot follow the data, narrower ones follow the accidents of the
    sample. It presumes clean points on a set of lower dimension (curves, clusters, surfaces) and samples dense
    enough that neighbours are not farther apart than the noise; otherwise it is too large. In many dimensions
    that fails, so what the spectrum of the covariance says is taken where it is less, or where the mixture does not
    reach the points held out. Columns that do not vary have no part in it.
    """
    points = copied(np.asarray(X), np.float64)
    points = points[:, (points != points[0]).any(dim=0)]
    if not points.numel():
        return 0.0
    generator = torch.Generator().manual_seed(random_state)
    points = points[torch.randperm(len(points), generator=generator)][: 2 * MAX_POINTS]
    ceiling = _median_variance(points) ** 0.5
    if ceiling == 0 or len(points) < 8:
        return ceiling
    train, test = points[::2], points[1::2]
    to_train = torch.cdist(train, train[:MAX_PLACES]).square()
    to_test = torch.cdist(test, train[:MAX_PLACES]).square()
    levels, scores = [ceiling], [_log_likelihood(to_train, to_test, ceiling, points.shape[1])]
    # Downwards until the likelihood has fallen well below its best: it has one peak.
    while math.isfinite(scores[-1]) and scores[-1] >= max(scores) - 0.05 and len(levels) < 80:
        levels.append(levels[-1] / RATIO)
        scores.append(_log_likelihood(to_train, to_test, levels[-1], points.shape[1]))
    best = int(np.argmax(scores))
    if not 0 < best < len(levels) - 1 or not math.isfinite(scores[best + 1]):
        return levels[best]
    left, top, right = scores[best - 1 : best + 2]
    shift = 0.5 * (left - right) / (left - 2 * top + right)
    return levels[best] * RATIO**-shift


def _median_variance(points: Tensor) -> float:
    """Return the median eigenvalue of the covariance, which few directions of the data do not change.

    Few samples spread the eigenvalues of noise, and fewer than dimensions leave some at 0: then the median of the
    others is relative to that of noise of variance 1, whose eigenvalues follow the law of Marchenko and Pastur.
    """
    n, d = points.shape
    if n > FEW * d:
        return float(torch.linalg.eigvalsh(torch.cov(points.T).reshape(d, d)).clamp(min=0).median())
    centred = points - points.mean(dim=0)
    rank, most = sorted((n - 1, d))
    spectrum = torch.linalg.svdvals(centred)[:rank].square() / most
    return float(spectrum.median()) / _median_of_noise(rank / most) if rank else 0.0


def _median_of_noise(ratio: float) -> float:
    """Return the median of the law of Marchenko and Pastur, for a ratio of at most 1."""
    angle = (torch.arange(4096, dtype=torch.float64) + 0.5) * (math.pi / 4096)
    value = 1 + ratio - 2 * ratio**0.5 * angle.cos()
    distribution = (angle.sin().square() / value).cumsum(dim=0)
    return float(value[torch.searchsorted(distribution, 0.5 * distribution[-1])])


def _log_likelihood(to_train: Tensor, to_test: Tensor, sigma: float, dimension: int) -> float:
    """Return the mean log-likelihood of the test points under the mixture fitted to the training points.

    It is -inf where many test points are beyond its reach: at the floor only the factor σ^-d would count.
    """
    K = torch.exp(to_train / (-2 * sigma**2))
    weight = K.new_full((K.shape[1],), 1.0 / K.shape[1])
    tiny = torch.finfo(K.dtype).tiny
    for _ in range(EM_STEPS):
        weight = weight * (K.T @ (K @ weight).clamp(min=tiny).reciprocal()) / len(K)
    # In logarithms, for test points beyond the reach of the kernel.
    log_weight = weight.clamp(min=tiny).log()
    value = torch.logsumexp(to_test / (-2 * sigma**2) + log_weight, dim=1).clamp(min=FLOOR)
    if float((value <= FLOOR).double().mean()) > BEYOND_REACH:
        return -math.inf
    return float(value.mean()) - dimension * math.log(sigma)
