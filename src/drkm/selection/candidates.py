"""The candidates of a grid: each is fitted, and scored on held-out points."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from drkm.estimator import ConstrDRKM
from drkm.inference.eigencomponents import PREIMAGE_TOL
from drkm.machine import interrupts
from drkm.selection.grid import Variants, configured, kept_components
from drkm.selection.risk import denoising_losses
from drkm.strange_data import StrangeDataWarning
from drkm.training.parameters import component_columns


class Job(NamedTuple):
    """One fit, and everything that is needed to score its variants."""

    base: ConstrDRKM
    fixed: dict[str, Any]
    variants: Variants
    train: np.ndarray
    held: np.ndarray
    omega: np.ndarray
    method: str | None


def outcomes_of(jobs: Sequence[Job], n_jobs: int | None, verbose: int) -> list[list[dict[str, Any]]]:
    """Return the losses of all variants of each fit, computed by so many processes."""
    from sklearn.utils.parallel import Parallel, delayed
    from tqdm import tqdm

    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_attempt)(job) for job in jobs)
    return list(tqdm(outcomes, total=len(jobs), disable=not verbose, desc="select", leave=False))


def fitted(base: ConstrDRKM, fixed: Mapping[str, Any], X: Any) -> ConstrDRKM:
    """Return the model with these parameters, fitted to X, without a warning if it does not converge."""
    model = configured(base, fixed)
    # Convergence is a column of the table.
    with interrupts.passed_on(), warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return model.fit(X)


def _attempt(job: Job) -> list[dict[str, Any]]:
    """Return the result of `_evaluate`, or the reason of failure for every variant."""
    try:
        return _evaluate(job)
    except ValueError as error:
        # Invalid parameters were refused before: this is due to the data, and other candidates may work.
        nothing = np.full(len(job.held), np.nan)
        failed = {"risk": nothing, "reconstruction": nothing, "n_components": np.nan, "seconds": np.nan}
        return [{**failed, "converged": False, "failure": str(error)} for _ in job.variants]


def _evaluate(job: Job) -> list[dict[str, Any]]:
    """Fit one model and return the losses of its variants, one number per held-out point."""
    clock = time.perf_counter()
    # The final fit warns once, with the names of columns and the positions of rows in X.
    with warnings.catch_warnings(action="ignore", category=StrangeDataWarning):
        model = fitted(job.base, job.fixed, job.train)
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


def in_grid_order(
    groups: list[tuple[dict[str, Any], Variants]], outcomes: list[list[dict[str, Any]]], criterion: str
) -> list[dict[str, Any]]:
    """Return one row of the table per candidate, in the order of the grid, with its losses as "_losses"."""
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
