"""Choosing the number of components, layers and bandwidths on held-out points, without labels."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from torch import Tensor

from drkm.estimator import ConstrDRKM
from drkm.inputs import is_frame
from drkm.machine import interrupts
from drkm.selection.grid import Variants, check, configured, describe, fits_of, kept_components, split
from drkm.selection.noise import estimate_noise
from drkm.selection.risk import denoising_losses, perturbations
from drkm.training.parameters import array, component_columns
from drkm.validation import checks

CRITERIA = ("risk", "reconstruction")
#: noise below this fraction of the largest deviation is rounding
LEAST_NOISE = 1e-6
#: pre-images to this fraction of the bandwidth are enough to compare candidates
PREIMAGE_TOL = 1e-3


class _Job(NamedTuple):
    """One fit, and all that its variants are judged by."""

    base: ConstrDRKM
    fixed: dict[str, Any]
    variants: Variants
    train: np.ndarray
    held: np.ndarray
    omega: np.ndarray
    method: str | None


@dataclass
class Selection:
    """What `select` found.

    Attributes
    ----------
    table : list of dict
        One row a candidate, in the order of the grid: `params`, `criterion` (lower is better), `error` (its
        standard error relative to the best), `reconstruction`, `n_components`, `seconds`, `converged`. A candidate
        that the data refused has NaN for all of these numbers and the reason as `failure`, None for the others.
    best_index : int
        Row of the smallest criterion.
    best_params : dict
        The candidate in that row, with the keys of the grid.
    best_estimator : ConstrDRKM or None
        That candidate fitted on all samples.
    components : list of (layer, index) or None
        The components that the candidate keeps, for `denoise`.
    noise : float
        The standard deviation of the noise, given or estimated.
    criterion : str
    spectra : list of arrays
        Eigenvalues of each layer of that model; empty where it was not fitted.
    """

    table: list[dict[str, Any]] = field(repr=False)
    best_index: int
    best_estimator: ConstrDRKM | None
    components: Any
    noise: float
    criterion: str
    spectra: list[np.ndarray] = field(default_factory=list, repr=False)

    @property
    def best_params(self) -> dict[str, Any]:
        """The candidate of smallest criterion."""
        return self.table[self.best_index]["params"]

    def denoise(self, X: Any) -> Any:
        """Return the rows of X denoised by the chosen model with the chosen components."""
        if self.best_estimator is None:
            raise ValueError("refit: the chosen model was not fitted, call select with refit=True")
        return self.best_estimator.denoise(X, components=self.components)

    def to_markdown(self, rows: int = 10) -> str:
        """Return the best candidates as a table."""
        best = sorted(self._fitted_rows(), key=lambda row: row["criterion"])[:rows]
        lines = [f"| candidate | components | {self.criterion} | ± | reconstruction |", "|---|---|---|---|---|"]
        for row in best:
            numbers = " | ".join(f"{row[name]:.4g}" for name in ("criterion", "error", "reconstruction"))
            lines.append(f"| {describe(row['params'])} | {row['n_components']} | {numbers} |")
        return "\n".join(lines)

    def _fitted_rows(self) -> list[dict[str, Any]]:
        return [row for row in self.table if row["failure"] is None]

    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """Return (number of components, criterion) of candidates that differ in nothing else, by what they share."""
        out: dict[str, list[tuple[int, float]]] = {}
        for row in self._fitted_rows():
            shared = {k: v for k, v in row["params"].items() if k not in ("keep", "components", "n_components")}
            out.setdefault(describe(shared), []).append((row["n_components"], row["criterion"]))
        return out

    def plot(self, axes: Any = None) -> Any:
        """Draw the criterion against the number of components, and the eigenvalues of the chosen model's layers.

        Parameters
        ----------
        axes : pair of matplotlib axes, optional

        Returns
        -------
        matplotlib.figure.Figure
        """
        from drkm.plotting import plot_selection

        return plot_selection(self, axes)


def select(
    X: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    *,
    estimator: ConstrDRKM | None = None,
    validation: Any = None,
    holdout: float = 0.25,
    criterion: str = "risk",
    noise: float | str = "auto",
    draws: int = 2,
    method: str | None = None,
    refit: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> Selection:
    """Choose among models by how well they denoise held-out points, without labels and without clean data.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
        Noisy samples.
    grid : dict of lists, or a sequence of such dicts
        Parameters of `ConstrDRKM`, also nested ones, and the values to combine; "sigma2" makes the kernels RBF
        where the estimator has kernel objects. Two more keys: "keep", how many leading components of each layer the
        reconstruction uses, an int for all or one per layer; "components", as in `denoise`. Candidates that differ only
        in the last two share one fit.
    estimator : ConstrDRKM, optional
        Parameters that the grid does not name. By default candidates are fitted to a loose tolerance, and the best
        one again with the defaults of `ConstrDRKM`.
    validation : array of shape (m, d), optional
        Noisy points to judge by; by default a part of X.
    holdout : float
        That part of X.
    criterion : {"risk", "reconstruction"}
        "risk" estimates the error of the denoised points against the clean ones, see `drkm.selection.risk`.
        "reconstruction" is minus `score`, which prefers not to smooth at all.
    noise : float or "auto"
        Standard deviation of the noise in each coordinate; "auto" estimates it from X.
    draws : int
        Pairs of moved copies of each held-out point.
    method : str, optional
        How pre-images are found, as in `denoise`.
    refit : bool
        Fit the best candidate on all of X.
    n_jobs : int, optional
        Processes; -1 means all.
    random_state : int
        Seed of the split and of the copies, the same for all candidates.
    verbose : int
        Whether to show progress.

    Returns
    -------
    Selection
    """
    samples = _finite("X", X)
    if samples.ndim != 2 or len(samples) < 4:
        raise ValueError(f"X: expected at least 4 samples as rows, got shape {samples.shape}")
    _check_choices(criterion, holdout, draws, n_jobs, estimator)
    groups = fits_of(grid)
    base = estimator if estimator is not None else ConstrDRKM(tol=1e-3, max_iter=200)
    rng = _generator(random_state)
    if validation is None:
        train, held = _split_off(samples, holdout, rng)
    else:
        train, held = samples, _finite("validation", validation)
        if held.ndim != 2 or held.shape[1] != samples.shape[1] or len(held) == 0:
            raise ValueError(f"validation: expected rows of {samples.shape[1]} features like X, got shape {held.shape}")
    for fixed, variants in groups:
        check(base, fixed, variants, len(train))
    sigma = _noise_level(noise, samples)
    if criterion == "risk" and sigma <= LEAST_NOISE * samples.std(axis=0).max():
        told = "noise: half of the directions of X do not vary, so none is found, and candidates that smooth least win"
        warnings.warn(f"{told}; give it as a number, or leave columns out", UserWarning, stacklevel=2)
    omega = perturbations(held.shape, sigma, draws, rng)
    jobs = [_Job(base, fixed, variants, train, held, omega, method) for fixed, variants in groups]
    outcomes = _run(jobs, n_jobs, verbose)
    rows = _in_grid_order(groups, outcomes, criterion)
    _tell_failures([row["failure"] for row in rows if row["failure"]], len(rows))
    losses = np.array([row.pop("_losses") for row in rows])
    best = int(np.nanargmin(losses.mean(axis=1)))
    for row, loss in zip(rows, losses, strict=True):
        row["error"] = float((loss - losses[best]).std() / math.sqrt(len(loss)))
    result = Selection(rows, best, None, None, sigma, criterion)
    if refit:
        # To what was given, so that the model knows its names and answers in kind.
        given = X if isinstance(X, Tensor) or is_frame(X) else samples
        _refit(result, estimator if estimator is not None else ConstrDRKM(), given)
    return result


def _check_choices(
    criterion: str, holdout: float, draws: int, n_jobs: int | None, estimator: ConstrDRKM | None
) -> None:
    if criterion not in CRITERIA:
        raise ValueError(f"criterion: unknown name {criterion!r}, allowed are {', '.join(CRITERIA)}")
    if not isinstance(holdout, Real) or not 0 < holdout < 1:
        raise ValueError(f"holdout: expected a fraction between 0 and 1, got {holdout!r}")
    checks.integer("draws", draws, 1)
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs: expected a number of processes, or -1 for one per processor, got {n_jobs!r}")
    if estimator is not None and not isinstance(estimator, ConstrDRKM):
        raise TypeError(f"estimator: expected a ConstrDRKM, got {estimator!r}")


def _generator(random_state: int) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state: expected an integer of at least 0, got {random_state!r}") from error


def _refit(result: Selection, base: ConstrDRKM, X: Any) -> None:
    """Fit the best candidate to all samples, and keep it with what belongs to it."""
    fixed, variant = split(result.best_params)
    result.best_estimator = model = _fitted(base, fixed, X)
    result.components = kept_components(variant, model.layer_slices_)
    result.spectra = [array("eigenvalues_", values).cpu().numpy() for values in model.eigenvalues_]


def _finite(name: str, points: Any) -> np.ndarray:
    """Return points as an array of finite numbers."""
    found = array(name, points).cpu().numpy()
    if not np.isfinite(found).all():
        raise ValueError(f"{name}: contains NaN or infinity")
    return found


def _split_off(samples: np.ndarray, holdout: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples to train on, of which two at least stay, and those held out."""
    order = rng.permutation(len(samples))
    count = min(max(1, round(holdout * len(samples))), len(samples) - 2)
    return samples[np.sort(order[count:])], samples[order[:count]]


def _tell_failures(reasons: Sequence[str], candidates: int) -> None:
    if len(reasons) == candidates:
        raise ValueError(f"grid: no candidate could be fitted, the first: {reasons[0]}")
    if reasons:
        told = f"{len(reasons)} of {candidates} candidates could not be fitted, the first: {reasons[0]}"
        warnings.warn(told, FitFailedWarning, stacklevel=3)


def _noise_level(noise: float | str, samples: np.ndarray) -> float:
    if isinstance(noise, str):
        if noise != "auto":
            raise ValueError(f'noise: expected a positive number or "auto", got {noise!r}')
        return estimate_noise(samples)
    if not (isinstance(noise, Real) and math.isfinite(noise) and noise > 0):
        raise ValueError(f'noise: expected a positive number or "auto", got {noise!r}')
    return float(noise)


def _run(jobs: Sequence[_Job], n_jobs: int | None, verbose: int) -> list[list[dict[str, Any]]]:
    from sklearn.utils.parallel import Parallel, delayed
    from tqdm import tqdm

    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_attempt)(job) for job in jobs)
    return list(tqdm(outcomes, total=len(jobs), disable=not verbose, desc="select", leave=False))


def _fitted(base: ConstrDRKM, fixed: Mapping[str, Any], X: Any) -> ConstrDRKM:
    model = configured(base, fixed)
    # Whether a fit converged is a column of the table.
    with interrupts.passed_on(), warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return model.fit(X)


def _attempt(job: _Job) -> list[dict[str, Any]]:
    """Return what `_evaluate` returns, or for every variant why there is nothing."""
    try:
        return _evaluate(job)
    except ValueError as error:
        # What the parameters alone forbid was refused before: this is about the data, and other candidates may do.
        nothing = np.full(len(job.held), np.nan)
        failed = {"risk": nothing, "reconstruction": nothing, "n_components": np.nan, "seconds": np.nan}
        return [{**failed, "converged": False, "failure": str(error)} for _ in job.variants]


def _evaluate(job: _Job) -> list[dict[str, Any]]:
    """Fit one model and return the losses of its variants, one number a held-out point."""
    clock = time.perf_counter()
    model = _fitted(job.base, job.fixed, job.train)
    fit_seconds = (time.perf_counter() - clock) / len(job.variants)
    rows = []
    for _, variant in job.variants:
        clock = time.perf_counter()
        chosen = kept_components(variant, model.layer_slices_)

        def denoise(points: np.ndarray, chosen: Any = chosen) -> np.ndarray:
            found = model.reconstruct(points, chosen, job.method, tol=PREIMAGE_TOL).points
            return np.asarray(found, dtype=np.float64)

        risk, reconstruction = denoising_losses(denoise, job.held, job.omega)
        rows.append(
            {
                "risk": risk,
                "reconstruction": reconstruction,
                "n_components": len(component_columns(chosen, model.layer_slices_)),
                "seconds": time.perf_counter() - clock + fit_seconds,
                "converged": model.converged_,
                "failure": None,
            }
        )
    return rows


def _in_grid_order(
    groups: list[tuple[dict[str, Any], Variants]], outcomes: list[list[dict[str, Any]]], criterion: str
) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for (fixed, variants), results in zip(groups, outcomes, strict=True):
        for (place, variant), result in zip(variants, results, strict=True):
            losses = result[criterion]
            rows[place] = {
                "params": {**fixed, **variant},
                "criterion": float(losses.mean()),
                "reconstruction": float(result["reconstruction"].mean()),
                "n_components": result["n_components"],
                "seconds": result["seconds"],
                "converged": result["converged"],
                "failure": result["failure"],
                "_losses": losses,
            }
    return [rows[place] for place in sorted(rows)]
