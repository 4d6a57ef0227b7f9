"""The run behind Figures 1 to 3: one curve, denoised by the paper's model, each component alone and all together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from drkm.estimator import ConstrDRKM
from drkm.experiments.denoising import _problems as problems
from drkm.experiments.denoising._methods import select_layers
from drkm.experiments.denoising._panels import COMPONENTS
from drkm.experiments.denoising._problems import Array, NoisyCurve, errors, rounded
from drkm.experiments.denoising._protocol import reconstruct
from drkm.experiments.quiet import quiet
from drkm.kernels import RBF
from drkm.machine.threads import one_thread

#: σ_2² so large that the second layer is numerically the constant vector, as with the paper's widths
WIDE = 50.0
#: points per panel that are kept for the figure; errors are over all points
DRAWN = 1000


def run_panels(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the points of every panel with their errors."""
    problem, sizes = problems.problem_of(parameters, seed)
    with one_thread():
        model, sigma2, steps = least_error(problem, sizes.protocol)
        panels = {problems.NOISY: problem.train}
        panels |= {name: reconstruct(model, problem.train, chosen, steps=steps) for name, chosen in COMPONENTS.items()}
        selection = select_layers(2, problem, sizes, problems.noise_of(problem))
        panels[problems.TWO_LAYERS] = selection.denoise(problem.train)
        panels[problems.BOUND] = problems.posterior_mean(problem, problem.train)
    return {
        "σ²": sigma2,
        "steps": steps,
        "selected": list(selection.best_params["n_components"]),
        "panels": [_panel(problem, name, points) for name, points in panels.items()],
    }


def least_error(problem: NoisyCurve, bandwidths: tuple[float, ...]) -> tuple[ConstrDRKM, float, int | None]:
    """Return model, σ_1² and number of steps with the least validation error when the second layer alone denoises."""
    found: list[tuple[float, float, int | None, ConstrDRKM]] = []
    for sigma2 in bandwidths:
        with quiet():
            model = ConstrDRKM((2, 1), eta=1.0, kernel=[RBF(sigma2), RBF(WIDE)], tol=1e-4, max_iter=200).fit(
                problem.train
            )
        for steps in (1, 3, 10, 30, None):
            points = reconstruct(model, problem.validation, [(2, 0)], steps=steps)
            found.append((problems.mean_squared_error(points, problem.validation_clean), sigma2, steps, model))
    _, sigma2, steps, model = min(found, key=lambda entry: entry[0])
    return model, sigma2, steps


def _panel(problem: NoisyCurve, name: str, points: Array) -> dict[str, Any]:
    shown = np.round(points[:DRAWN], 4).tolist()
    return {"name": name, **errors(problem, points), "gap": rounded(gap(problem, points)), "points": shown}


def gap(problem: NoisyCurve, points: Array) -> float:
    """Return the mean distance from the curve to the nearest point: large if part of the curve is lost."""
    nodes, weights = problem.curve.quadrature(1500)
    return float(np.average(KDTree(points).query(nodes)[0], weights=weights))
