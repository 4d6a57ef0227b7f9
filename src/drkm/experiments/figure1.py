"""Figure 1: a square and a half circle, noisy and denoised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tqdm import tqdm

from drkm.experiments import check_scale
from drkm.experiments._denoising import (
    DATASETS,
    SIZES,
    Problem,
    make_problem,
    noise_of,
    one_thread,
    posterior_mean,
    select_deep,
)
from drkm.experiments._output import save_figure, save_table
from drkm.experiments._panels import NOISE, errors, least_error
from drkm.experiments._protocol import reconstruct


def run(
    scale: str = "quick",
    out: str | Path = "results",
    *,
    seed: int = 2,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> list[Path]:
    """Draw the figure into `out`/figure1 and return the files; parameters as in `table1.run`."""
    from drkm.plotting import scatter_before_after, style

    sizes = SIZES[check_scale(scale)]
    panels: list[tuple[Problem, str, np.ndarray]] = []
    with one_thread(), tqdm(total=4, desc=f"figure1 ({scale})", disable=not verbose) as bar:
        for dataset in ("square", "half_circle"):
            problem = make_problem(dataset, NOISE, sizes.n_train, sizes.n_validation, seed)
            model, sigma2, steps = least_error(problem, sizes.protocol)
            title = f"paper's model, s = (2, 1), σ² = {sigma2:g}, steps: {steps or 'all'}"
            panels.append((problem, title, reconstruct(model, problem.train, steps=steps)))
            bar.update()
            chosen = select_deep(problem, sizes, noise_of(problem))
            title = f"components chosen by select: {chosen.best_params['keep']}"
            panels.append((problem, title, chosen.denoise(problem.train)))
            panels.append((problem, "Bayes posterior mean", posterior_mean(problem, problem.train)))
            bar.update()
    with style() as plt:
        figure, axes = plt.subplots(2, 3, figsize=(9, 5.2), layout="constrained", height_ratios=(1.5, 1))
        rows = []
        for place, (problem, title, points) in zip(axes.ravel(), panels, strict=True):
            row = errors(problem, title, points)
            error = f"MSE {row['MSE to clean']:.4f}, distance to the curve {row['mean distance to curve']:.3f}"
            curve = problem.curve.quadrature(1000)[0]
            scatter_before_after(place, problem.train, points, f"{title}\n{error}", curve)
            rows.append({"dataset": DATASETS[problem.dataset], **row})
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, markerscale=3)
    folder = Path(out) / "figure1"
    text = f"Square and half circle, σ_n = {NOISE}"
    return [
        *save_figure(figure, folder, f"figure1-{scale}"),
        *save_table(rows, folder, f"figure1-{scale}", text),
    ]
