"""Figures 2 and 3: what each component of the paper's model reconstructs on its own."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from drkm.estimator import ConstrDRKM
from drkm.experiments import check_scale
from drkm.experiments._denoising import (
    DATASETS,
    SIZES,
    Problem,
    make_problem,
    mean_squared_error,
    noise_of,
    one_thread,
    select_deep,
)
from drkm.experiments._output import save_figure, save_table
from drkm.experiments._protocol import reconstruct
from drkm.kernels import RBF

NOISE = 0.1
#: σ_2² at which the second layer is the constant vector to many digits, as with the paper's widths
WIDE = 50.0
PANELS = {
    "layer 1, component 1": [(1, 0)],
    "layer 1, component 2": [(1, 1)],
    "layer 2, component 1": [(2, 0)],
    "all three components": None,
}


def run_components(name: str, dataset: str, scale: str, out: str | Path, seed: int, verbose: int) -> list[Path]:
    """Draw one panel a component, s = (2, 1), and one for the model chosen by `select`."""
    sizes = SIZES[check_scale(scale)]
    with one_thread(), tqdm(total=3, desc=f"{name} ({scale})", disable=not verbose) as bar:
        problem = make_problem(dataset, NOISE, sizes.n_train, sizes.n_validation, seed)
        model, sigma2, steps = least_error(problem, sizes.protocol)
        bar.update()
        panels = {
            title: reconstruct(model, problem.train, components, steps=steps) for title, components in PANELS.items()
        }
        bar.update()
        panels["two layers, selected"] = select_deep(problem, sizes, noise_of(problem)).denoise(problem.train)
        bar.update()
    figure = draw(problem, panels)
    rows = [errors(problem, "noisy points", problem.train)]
    rows += [errors(problem, title, points) for title, points in panels.items()]
    folder = Path(out) / name
    text = f"{DATASETS[dataset]}, σ_n = {NOISE}, s = (2, 1), σ_1² = {sigma2:g}, steps: {steps or 'to convergence'}"
    return [*save_figure(figure, folder, f"{name}-{scale}"), *save_table(rows, folder, f"{name}-{scale}", text)]


def least_error(problem: Problem, bandwidths: tuple[float, ...]) -> tuple[ConstrDRKM, float, int | None]:
    """Return the model, its σ_1² and the number of steps whose second layer alone denoises validation points best."""
    found: list[tuple[float, float, int | None, ConstrDRKM]] = []
    for sigma2 in bandwidths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = ConstrDRKM((2, 1), kernel=[RBF(sigma2), RBF(WIDE)], tol=1e-4, max_iter=200).fit(problem.train)
        for steps in (1, 3, 10, 30, None):
            points = reconstruct(model, problem.validation, [(2, 0)], steps=steps)
            found.append((mean_squared_error(points, problem.validation_clean), sigma2, steps, model))
    _, sigma2, steps, model = min(found, key=lambda entry: entry[0])
    return model, sigma2, steps


def errors(problem: Problem, title: str, points: np.ndarray) -> dict[str, Any]:
    """Return a row of the table beside the figure."""
    return {
        "points": title,
        "MSE to clean": mean_squared_error(points, problem.clean),
        "mean distance to curve": float(problem.curve.distance(points).mean()),
    }


def draw(problem: Problem, panels: dict[str, np.ndarray]) -> Any:
    """Return the figure: noisy points grey, denoised blue."""
    from drkm.plotting import scatter_before_after, style

    with style() as plt:
        columns = 3
        lines = -(-len(panels) // columns)
        size = (9, 2.3 * lines) if problem.dataset == "square_spiral" else (9, 3.2 * lines)
        figure, axes = plt.subplots(lines, columns, figsize=size, layout="constrained")
        flat = axes.ravel()
        for place, (title, points) in zip(flat, panels.items(), strict=False):
            distance = problem.curve.distance(points).mean()
            title = f"{title}\nmean distance to the curve {distance:.3f}"
            scatter_before_after(place, problem.train, points, title, problem.curve.quadrature(1500)[0])
        for place in flat[len(panels) :]:
            place.set_axis_off()
        handles, labels = flat[0].get_legend_handles_labels()
        flat[-1].legend(handles, labels, loc="center", markerscale=3)
    return figure
