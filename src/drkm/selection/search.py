"""The search for a denoiser: coarse stages first, then fine ones, each around the best candidate so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from drkm.kernels import RBF, Kernel, Laplacian, Linear, Matern
from drkm.kernels.bandwidth import resolve_bandwidth
from drkm.selection.judge import Judge, Judged

#: ratio of neighbouring bandwidths in the coarse stage; the widest one relative to the median rule
COARSE, WIDEST = 4.0, 16.0
#: number of thresholds per kernel in the coarse stage, and the largest rank as a share of the samples
THRESHOLDS, HIGHEST = 6, 0.9
#: ranks of thresholds relative to the best so far, and to the best on fewer samples: more samples distinguish more
#: components from noise
AROUND, CLOSE = (0.4, 0.63, 1.0, 1.6, 2.5), (0.7, 0.84, 1.0, 1.19, 1.4)
LARGER = (0.9, 1.0, 1.15, 1.35, 1.6)
#: eigenpairs beyond the largest rank that is tried: this factor, and this many more
SPARE, FEW_MORE = 1.25, 10
#: kinds of shrinkage
KINDS = ("soft", "firm")


class ThresholdPath(NamedTuple):
    """A kernel, whether it is centred, and the ranks of thresholds and kinds of shrinkage to try with it."""

    kernel: Kernel
    center: bool
    ranks: tuple[float, ...]
    kinds: tuple[str, ...] = ("firm",)


#: a map over paths that may run in parallel
Mapper = Callable[[Callable[[ThresholdPath], list[Judged]], Sequence[ThresholdPath]], Iterator[list[Judged]]]


class Search:
    """A staged search over kernels, bandwidths, centring and thresholds, and all scored candidates.

    Parameters
    ----------
    X : array of shape (n, d)
        Noisy samples.
    judge : Judge
        Scores the candidates.
    each : callable
        Maps a function over paths, possibly in parallel.
    deadline : float
        Time by `time.monotonic` after which no further stage begins.
    """

    def __init__(self, X: np.ndarray, judge: Judge[Any], each: Mapper, deadline: float = math.inf):
        self.judge, self.each, self.deadline = judge, each, deadline
        self.tried: list[Judged] = []
        n = judge.fitted_to
        self.most = n
        self.highest = max(2.0, HIGHEST * (n - 1))
        self.median = resolve_bandwidth("median", torch.from_numpy(X), layer=1)
        self.narrowest = min(X.shape[1] * judge.variance, self.median / COARSE)

    def run(self) -> Judged:
        """Run the stages and return the best candidate."""
        for stage in (self._coarse, self._widths, self._families, self._details, self._fine):
            if self.tried and time.monotonic() > self.deadline:
                break
            for judged in self.each(self._judge, stage()):
                self.tried += [one for one in judged if math.isfinite(one.risk)]
        return self.best

    def around(self, best: Judged) -> Judged:
        """Search thresholds around that of a candidate that was found on other samples."""
        self.most = min(self.judge.fitted_to, math.ceil(3 * best.rank))
        self.highest = float(self.most)
        path = ThresholdPath(best.kernel, best.center, self._near(best, LARGER), (best.shrink.kind,))
        for judged in self.each(self._judge, [path]):
            self.tried += judged
        return self.best

    @property
    def best(self) -> Judged:
        """The candidate with the smallest estimated risk."""
        return self.tried[self.place_of_best]

    @property
    def place_of_best(self) -> int:
        """Its place among all candidates."""
        return int(np.argmin([one.risk for one in self.tried]))

    def _judge(self, path: ThresholdPath) -> list[Judged]:
        ranks = sorted({min(max(rank, 1.0), self.highest) for rank in path.ranks})
        # Components beyond the largest rank have the weight 0. Trials differ, and so do their ranks at one threshold.
        most = min(self.most, math.ceil(SPARE * ranks[-1]) + FEW_MORE)
        return self.judge.path(path.kernel, path.center, ranks, path.kinds, most)

    def _coarse(self) -> list[ThresholdPath]:
        ratio = WIDEST * self.median / self.narrowest
        widths = np.geomspace(self.narrowest, WIDEST * self.median, max(2, math.ceil(math.log(ratio, COARSE)) + 1))
        ranks = tuple(np.geomspace(2, self.highest, THRESHOLDS))
        linear = tuple(np.geomspace(1, min(self.highest, self.judge.d), THRESHOLDS))
        return [ThresholdPath(RBF(float(width)), True, ranks) for width in widths] + [
            ThresholdPath(Linear(), True, linear)
        ]

    def _widths(self) -> list[ThresholdPath]:
        best = self._best_of(RBF)
        return [
            ThresholdPath(RBF(factor * best.kernel.bandwidth), True, self._near(best, AROUND)) for factor in (0.5, 2.0)
        ]

    def _families(self) -> list[ThresholdPath]:
        best = self._best_of(RBF)
        width, ranks = best.kernel.bandwidth, self._near(best, AROUND)
        heavy: list[Kernel] = [Laplacian(width), Laplacian(8 * width), Matern(sigma2=2 * width)]
        return [ThresholdPath(kernel, True, ranks) for kernel in heavy]

    def _details(self) -> list[ThresholdPath]:
        best = self.best
        ranks = self._near(best, CLOSE)
        paths = [ThresholdPath(best.kernel, True, ranks, KINDS)]
        if best.kernel.has_bandwidth:
            paths.append(ThresholdPath(best.kernel, False, ranks, KINDS))
        return paths

    def _fine(self) -> list[ThresholdPath]:
        best = self.best
        if not best.kernel.has_bandwidth:
            return []
        return [
            ThresholdPath(
                best.kernel.with_parameters(sigma2=factor * best.kernel.bandwidth),
                best.center,
                self._near(best, CLOSE),
                (best.shrink.kind,),
            )
            for factor in (0.7, 1.4)
        ]

    def _best_of(self, family: type[Kernel]) -> Judged:
        return min((one for one in self.tried if type(one.kernel) is family), key=lambda one: one.risk)

    @staticmethod
    def _near(judged: Judged, factors: Sequence[float]) -> tuple[float, ...]:
        return tuple(factor * judged.rank for factor in factors)
