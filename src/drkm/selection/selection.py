"""`drkm.select`: model selection by the estimated denoising risk, without labels."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from torch import Tensor

from drkm.estimator import ConstrDRKM
from drkm.files import listed
from drkm.inputs import is_frame
from drkm.selection import candidates
from drkm.selection.automatic import choose_model
from drkm.selection.grid import check, fits_of, kept_components, split
from drkm.selection.noise import LARGEST, NO_NOISE, is_rounding, noise_level
from drkm.selection.result import Selection, spectra_of
from drkm.selection.risk import perturbations
from drkm.training import parameters
from drkm.training.parameters import array
from drkm.validation import checks
from drkm.validation.callers import level_of_caller

#: separates the random stream of a selection from others with the same seed
OWN_STREAM = 20
PURPOSES = ("these", "new")
#: criteria for candidates of a grid, and for those of a search without one
CRITERIA, CRITERIA_OF_SEARCH = ("risk", "reconstruction"), ("risk", "masked")
#: options that have an effect only with a grid, and only without one, with their defaults
ONLY_WITH_GRID = {"estimator": None, "validation": None, "holdout": 0.25, "draws": 2, "method": None}
ONLY_WITHOUT_GRID = {"for_": "these", "max_seconds": None}


def select(
    X: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
    *,
    for_: str = "these",
    estimator: ConstrDRKM | None = None,
    validation: Any = None,
    holdout: float = 0.25,
    criterion: str = "risk",
    noise: Any = "auto",
    draws: int = 2,
    method: str | None = None,
    refit: bool = True,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> Selection:
    """Choose a model by how well it denoises, without labels and without clean data.

    Without a grid everything is chosen: linear, Gaussian, Laplacian or Matérn kernel, bandwidth, centring, and the
    weights of components (`drkm.selection.search`). With a grid, its candidates are compared on held-out points.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
        Noisy samples.
    grid : dict of lists, or a sequence of such dicts, optional
        Parameters of `ConstrDRKM`, including nested ones, and the values to combine; "sigma2" replaces kernel objects
        of the estimator by RBF kernels, and leaves names of kernels as they are. Two more keys: "keep", the number of
        leading components of each layer that the reconstruction uses, an int for all or one per layer; and
        "components", as in `denoise`. Candidates that differ only in these two share one fit.
    for_ : {"these", "new"}
        Without a grid: whether to denoise the samples themselves, or new samples like them.
    estimator : ConstrDRKM, optional
        Values of parameters that are not in the grid. By default candidates are fitted to a loose tolerance, and the
        best one again with the defaults of `ConstrDRKM`. Its checkpoint is that of the final fit alone.
    validation : array of shape (m, d), optional
        Noisy points for the comparison; by default a part of X.
    holdout : float
        Share of X that is held out.
    criterion : {"risk", "reconstruction", "masked"}
        "risk" estimates the error of the denoised points against the clean ones, see `drkm.selection.risk`.
        "reconstruction", only with a grid, is minus `score`, which prefers not to smooth at all. "masked", only without
        a grid, needs no noise level: it is the error of the values that denoising gives to masked entries
        (`drkm.selection.masked`). It smooths too much unless the noise is large.
    noise : float, array of shape (d,) or "auto"
        Standard deviation of the noise in each coordinate; without a grid, also one per column. "auto" estimates one
        for all from X. `drkm.selection.noise_of_repeats` computes it from repeated measurements.
    draws : int
        Number of pairs of perturbed copies per held-out point.
    method : str, optional
        How pre-images are found, as in `denoise`.
    refit : bool
        Fit the best candidate to all of X.
    n_jobs : int, optional
        Number of processes (of threads without a grid); -1 means all processors.
    max_seconds : float, optional
        Without a grid: time after which no further stage of the search begins.
    random_state : int
        Seed of the split and of the perturbations, which are the same for all candidates.
    verbose : int
        If positive, show progress.

    Returns
    -------
    Selection
    """
    samples = _finite("X", X)
    if samples.ndim != 2 or len(samples) < 4:
        raise ValueError(f"X: expected at least 4 samples as rows, got {_shape_of(samples)}")
    if grid is None:
        _refuse_given(ONLY_WITH_GRID, (estimator, validation, holdout, draws, method), "needs a grid")
    else:
        _refuse_given(ONLY_WITHOUT_GRID, (for_, max_seconds), "is for a search without a grid")
    _check_choices(criterion, CRITERIA if grid is not None else CRITERIA_OF_SEARCH, holdout, draws, n_jobs, estimator)
    # Fit to the original object, so that the model knows column names and returns the same type.
    given = X if isinstance(X, Tensor) or is_frame(X) else samples
    if grid is None:
        parameters.one_of("for_", for_, PURPOSES if criterion == "risk" else ("these",))
        if criterion == "masked" and samples.shape[1] < 2:
            raise ValueError("criterion: 'masked' needs at least 2 columns, to predict one from others, got 1")
        limits: dict[str, Any] = {"n_jobs": n_jobs, "max_seconds": max_seconds, "verbose": verbose}
        # A separate stream: if X was made with the same seed, the very same noise would be used to score it.
        rng = _generator(random_state, OWN_STREAM)
        return choose_model(samples, given, noise, for_, rng, criterion=criterion, refit=refit, **limits)
    rng = _generator(random_state)
    if validation is None:
        train, held = _split_off(samples, holdout, rng)
    else:
        _check_columns(X, validation)
        train, held = samples, _points_like(samples, validation)
    # A checkpoint belongs to one fit.
    base = ConstrDRKM(tol=1e-3, max_iter=200) if estimator is None else clone(estimator).set_params(checkpoint=None)
    groups = fits_of(grid)
    for fixed, variants in groups:
        check(base, fixed, variants, len(train))
    sigma = _one_level(noise, samples)
    if criterion == "risk" and is_rounding(sigma, samples):
        warnings.warn(NO_NOISE, UserWarning, stacklevel=level_of_caller())
    omega = perturbations(held.shape, sigma, draws, rng)
    jobs = [candidates.Job(base, fixed, variants, train, held, omega, method) for fixed, variants in groups]
    outcomes = candidates.outcomes_of(jobs, n_jobs, verbose)
    rows = candidates.in_grid_order(groups, outcomes, criterion)
    best = _place_of_best(rows)
    if not refit:
        return Selection(rows, best, None, None, sigma, criterion)
    fixed, variant = split(rows[best]["params"])
    model = candidates.fitted(estimator if estimator is not None else ConstrDRKM(), fixed, given)
    kept = kept_components(variant, model.layer_slices_)
    return Selection(rows, best, model, kept, sigma, criterion, spectra_of(model))


def _check_columns(X: Any, validation: Any) -> None:
    """Refuse a frame whose columns are not those of X: they are compared by their places."""
    if is_frame(X) and is_frame(validation) and list(X.columns) != list(validation.columns):
        expected, got = listed(X.columns), listed(validation.columns)
        raise ValueError(f"validation: expected the columns of X in their order, {expected}, got {got}")


def _points_like(samples: np.ndarray, validation: Any) -> np.ndarray:
    held = _finite("validation", validation)
    if held.ndim != 2 or held.shape[1] != samples.shape[1] or len(held) == 0:
        raise ValueError(f"validation: expected rows of {samples.shape[1]} features like X, got shape {held.shape}")
    return held


def _one_level(noise: Any, samples: np.ndarray) -> float:
    sigma = noise_level(noise, samples).sigma
    if not isinstance(sigma, float):
        raise ValueError(f"noise: expected one number with a grid, got {np.shape(sigma)[0]} of them")
    return sigma


def _place_of_best(rows: list[dict[str, Any]]) -> int:
    """Return the place of the best candidate of a grid, and add to each row its error relative to that one."""
    _tell_failures([row["failure"] for row in rows if row["failure"]], len(rows))
    losses = np.array([row.pop("_losses") for row in rows])
    best = int(np.nanargmin(losses.mean(axis=1)))
    for row, loss in zip(rows, losses, strict=True):
        row["error"] = float((loss - losses[best]).std() / math.sqrt(len(loss)))
    return best


def _refuse_given(defaults: Mapping[str, Any], values: Sequence[Any], why: str) -> None:
    """Refuse options that would have no effect."""
    for (name, default), value in zip(defaults.items(), values, strict=True):
        if value is not default and not (isinstance(value, str | Real) and value == default):
            raise ValueError(f"{name}: this option {why}, got {value!r}")


def _check_choices(
    criterion: str, allowed: tuple[str, ...], holdout: float, draws: int, n_jobs: int | None, estimator: Any
) -> None:
    if criterion not in allowed:
        raise ValueError(f"criterion: unknown name {criterion!r}, allowed are {', '.join(allowed)}")
    if not isinstance(holdout, Real) or not 0 < holdout < 1:
        raise ValueError(f"holdout: expected a fraction between 0 and 1, got {holdout!r}")
    checks.integer("draws", draws, 1)
    checks.jobs("n_jobs", n_jobs)
    if estimator is not None and not isinstance(estimator, ConstrDRKM):
        raise TypeError(f"estimator: expected a ConstrDRKM, got {estimator!r}")


def _generator(random_state: Any, *stream: int) -> np.random.Generator:
    """Return the generator of a seed, or of one of its streams; None gives a different one every time."""
    try:
        if random_state is None or not stream:
            return np.random.default_rng(random_state)
        return np.random.default_rng([operator.index(random_state), *stream])
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state: expected an integer of at least 0, got {random_state!r}") from error


def _shape_of(samples: np.ndarray) -> str:
    """Return the shape in words, with the shape that arrays of images should have."""
    flat = f", reshape to {(len(samples), samples[0].size)}" if samples.ndim > 2 and len(samples) else ""
    return f"shape {samples.shape}{flat}"


def _finite(name: str, points: Any) -> np.ndarray:
    """Return points as an array of finite numbers."""
    found = array(name, points).cpu().numpy()
    if not np.isfinite(found).all():
        raise ValueError(f"{name}: contains NaN or infinity: drkm.Imputer fills in NaN")
    if found.size and np.ptp(found) > LARGEST:
        raise ValueError(f"{name}: values are too large for their squares, divide them by their typical size")
    return found


def _split_off(samples: np.ndarray, holdout: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the training samples, at least two, and the held-out ones."""
    order = rng.permutation(len(samples))
    count = min(max(1, round(holdout * len(samples))), len(samples) - 2)
    return samples[np.sort(order[count:])], samples[order[:count]]


def _tell_failures(reasons: Sequence[str], count: int) -> None:
    if len(reasons) == count:
        raise ValueError(f"grid: no candidate could be fitted, the first: {reasons[0]}")
    if reasons:
        told = f"{len(reasons)} of {count} candidates could not be fitted, the first: {reasons[0]}"
        warnings.warn(told, FitFailedWarning, stacklevel=level_of_caller())
