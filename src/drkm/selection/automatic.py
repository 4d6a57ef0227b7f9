"""Model selection without a grid: estimate the noise, search, and return the model with its expected error."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from drkm.estimator import ConstrDRKM
from drkm.inference.eigencomponents import EigenComponents
from drkm.machine.threads import one_thread
from drkm.selection.judge import Judge, Judged, scaled
from drkm.selection.masked import Masked
from drkm.selection.noise import is_rounding, noise_level
from drkm.selection.perturbed import Perturbed
from drkm.selection.result import Expected, Selection, spectra_of
from drkm.selection.search import Search, ThresholdPath
from drkm.validation import checks
from drkm.validation.callers import level_of_caller

#: maximum number of samples for comparing kernels, the same with masked entries, and for comparing thresholds
SOME, SOME_MASKED, MANY = 800, 400, 5000
#: the estimated noise counts as too large if the chosen model implies less than this part of it
TOO_LARGE = 0.95
#: relative standard error of an estimated noise level; its root mean square was 0.08 on the datasets and curves on
#: which the estimate was developed or tested
UNSURE = 0.1
#: resamples for the confidence in a choice, and the ratio of risks within which candidates count as equal
REDRAWS, ALIKE = 200, 1.02


def choose_model(
    samples: np.ndarray,
    given: Any,
    noise: Any,
    for_: str,
    rng: np.random.Generator,
    *,
    criterion: str,
    refit: bool,
    n_jobs: int | None,
    max_seconds: float | None,
    verbose: int,
) -> Selection:
    """Choose a denoiser from the samples alone, and fit it to them."""
    sigma, may_be_less = noise_level(noise, samples)
    if is_rounding(sigma, samples):
        raise ValueError("noise: none was found in X, so there is nothing to remove; if there is some, give its level")
    deadline = math.inf if max_seconds is None else time.monotonic() + checks.number("max_seconds", max_seconds)
    by_risk, most = criterion == "risk", SOME if criterion == "risk" else SOME_MASKED
    some = samples if len(samples) <= most else samples[np.sort(rng.permutation(len(samples))[:most])]
    each = _mapper(n_jobs, verbose)
    judge: Judge[Any] = Perturbed(some, sigma, for_, rng) if by_risk else Masked(some, sigma, rng)
    search = Search(some, judge, each, deadline)
    best = search.run()
    if (
        isinstance(judge, Perturbed)
        and may_be_less
        and (less := judge.consistent_noise(best)) < TOO_LARGE * np.max(sigma)
        # A denoiser that changes nothing says nothing about the noise level.
        and not is_rounding(less, some)
    ):
        sigma = less
        search = Search(some, Perturbed(some, sigma, for_, rng), each, deadline)
        best = search.run()
    if by_risk and len(some) < len(samples) <= MANY and time.monotonic() < deadline:
        best = Search(samples, Perturbed(samples, sigma, for_, rng), each).around(best)
    fresh = Perturbed(some, sigma, for_, rng)
    expected = _expected(fresh.again(best, search.most), fresh.variance, search, given_noise=not isinstance(noise, str))
    if expected.noise_left > 1:
        told = f"noise: cleaning is expected to leave {expected.noise_left:.0%} of it"
        warnings.warn(f"{told}: the samples say little about each other", UserWarning, stacklevel=level_of_caller())
    level, table, place = math.sqrt(fresh.variance), _table(search, len(samples)), search.place_of_best
    chosen = table[place]
    # Its weights may have been refined on more samples.
    chosen["params"]["shrink"] = scaled(best.shrink, len(samples)).parameter
    if not refit:
        return Selection(table, place, None, None, level, criterion, expected=expected)
    model = _fitted(best, samples, given)
    chosen["n_components"] = chosen["params"]["n_components"] = model.n_components
    return Selection(table, place, model, None, level, criterion, spectra_of(model), expected)


def _mapper(n_jobs: int | None, verbose: int) -> Callable[[Any, Sequence[ThresholdPath]], Iterator[list[Judged]]]:
    from sklearn.utils.parallel import Parallel, delayed
    from tqdm import tqdm

    def each(judge: Callable[[ThresholdPath], list[Judged]], paths: Sequence[ThresholdPath]) -> Iterator[list[Judged]]:
        def alone(path: ThresholdPath) -> list[Judged]:
            with one_thread(n_jobs not in (None, 1)):
                return judge(path)

        found = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(alone)(path) for path in paths)
        return iter(tqdm(found, total=len(paths), disable=not verbose, desc="select", leave=False))

    return each


def _expected(again: Judged, variance: float, search: Search, *, given_noise: bool) -> Expected:
    n = len(again.losses)
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=REDRAWS) / n
    risks = draws @ np.stack([one.losses for one in search.tried], axis=1)
    chosen = risks[:, search.place_of_best]
    sure = float((chosen <= ALIKE * risks.min(axis=1)).mean())
    error, deviation = max(again.risk, 0.0), float(again.losses.std() / math.sqrt(n))
    if not given_noise:
        # The error is the residual minus the noise: an error in the noise variance changes it by this much.
        deviation = math.hypot(deviation, 2 * UNSURE * variance * (1 - 2 * float(again.passed.mean())))
    return Expected(error, deviation, error / variance, sure, given_noise)


def _table(search: Search, n: int) -> list[dict[str, Any]]:
    best = search.best.losses
    return [
        {
            "params": {
                "kernel": one.kernel,
                "center": one.center,
                "shrink": scaled(one.shrink, n).parameter,
                "n_components": round(one.rank),
            },
            "criterion": one.risk,
            "error": float((one.losses - best).std() / math.sqrt(len(best))),
            "reconstruction": math.nan,
            "n_components": round(one.rank),
            "seconds": math.nan,
            "converged": True,
            "failure": None,
        }
        for one in search.tried
    ]


def _fitted(best: Judged, samples: np.ndarray, given: Any) -> ConstrDRKM:
    shrink = scaled(best.shrink, len(samples))
    if len(samples) <= MANY:
        X = torch.from_numpy(np.ascontiguousarray(samples))
        most = len(samples) if len(samples) <= SOME else min(len(samples), 2 * math.ceil(best.rank))
        count = EigenComponents(best.kernel, X, center=best.center, rank=most).rank(shrink)
    else:
        count = math.ceil(best.rank)
    model = ConstrDRKM(count, kernel=best.kernel, center=best.center, shrink=shrink.parameter)
    return model.fit(given)
