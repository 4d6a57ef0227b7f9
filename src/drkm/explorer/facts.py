"""Facts about the model that a page shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from drkm.explorer.subject import Subject
from drkm.files.json_values import plain
from drkm.wording import duration

#: maximum number of history entries that are drawn
MOST_STEPS = 500


def facts(subject: Subject) -> dict[str, Any]:
    """Return spectra, effective sample sizes, convergence and settings of a model."""
    model, fitted = subject.model, subject.model.fitted_
    result = fitted.result
    layers = [
        {
            "components": size,
            "kernel": kernel.describe(),
            "eta": eta,
            "eigenvalues": values,
            "trace": trace,
            "samples": support,
        }
        for size, kernel, eta, values, trace, support in zip(
            fitted.sizes, fitted.kernels, fitted.eta, fitted.eigenvalues, fitted.traces, fitted.supports, strict=True
        )
    ]
    return plain(
        {
            "samples": fitted.n,
            "features": fitted.X.shape[1],
            "layers": layers,
            "outcome": fitted.message,
            "converged": bool(result.converged),
            "objective": result.objective,
            "history": _history(result.history),
            "tol": model.tol,
            "chosen": _chosen(subject),
            "summary": model.summary(),
        }
    )


def _history(history: list[dict[str, float]]) -> dict[str, list[float]]:
    """Return iterations with their stationarity and energy, thinned if there are many."""
    kept = history[:: max(1, len(history) // MOST_STEPS)]
    return {
        name: [float(entry.get(name, np.nan)) for entry in kept] for name in ("iteration", "objective", "stationarity")
    }


def _chosen(subject: Subject) -> list[tuple[str, str]]:
    """Return the settings of the fit, given or chosen automatically."""
    fitted = subject.model.fitted_
    rows = [
        ("kernels", ", ".join(kernel.describe() for kernel in fitted.kernels)),
        ("weights eta", ", ".join(f"{eta:.4g}" for eta in fitted.eta)),
        ("axes", str(fitted.axes)),
        ("codes of new points", str(fitted.encoder)),
        ("centred", "yes" if fitted.center else "no"),
        ("Gram matrices", fitted.operator),
        ("starts", str(len(fitted.objectives))),
        ("time of the fit", duration(fitted.seconds)),
    ]
    prepared = subject.preparation.describe()
    return [*rows, ("data", prepared)] if prepared else rows
