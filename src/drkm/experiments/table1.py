"""Table 1: denoising four plane curves at three noise levels."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from tqdm import tqdm

from drkm.experiments import check_scale
from drkm.experiments._denoising import (
    DATASETS,
    METHODS,
    NOISES,
    PUBLISHED,
    SIZES,
    Outcome,
    Problem,
    Sizes,
    make_problem,
    mean_squared_error,
    noise_of,
    one_thread,
)
from drkm.experiments._output import save_figure, save_table, write_text
from drkm.experiments._protocol import FIRST_MEASURE, MEASURES, VARIANTS, Candidate, best, candidates

Row = dict[str, Any]
ROW_ORDER = [*list(METHODS)[:-1], "paper's kernel PCA (3)", "paper's deep model (2, 1)", "Bayes posterior mean"]


def run(
    scale: str = "quick",
    out: str | Path = "results",
    *,
    seed: int = 2,
    n_jobs: int | None = -1,
    verbose: int = 1,
    points: int | None = None,
) -> list[Path]:
    """Run the 12 cells and write the tables and the figure.

    Parameters
    ----------
    scale : {"quick", "paper"}
        300 training and 100 validation points, or 3000 and 750.
    out : path
        Folder of the results; files go to its subfolder `table1`.
    seed : int
        Seed of the data.
    n_jobs : int, optional
        Processes.
    verbose : int
        Whether to show progress.
    points : int, optional
        Another number of training points; a quarter as many validate.

    Returns
    -------
    list of Path
        Files written.
    """
    sizes = SIZES[check_scale(scale)]
    if points is not None:
        sizes = replace(sizes, n_train=points, n_validation=points // 4)
        scale = f"{scale}-{points}"
    clock = time.perf_counter()
    cells = [(dataset, noise) for noise in NOISES for dataset in DATASETS]
    jobs = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(run_cell)(dataset, noise, sizes, seed) for dataset, noise in cells
    )
    results = list(tqdm(jobs, total=len(cells), desc=f"table1 ({scale})", disable=not verbose))
    errors = [row for result in results for row in result[0]]
    definitions = [row for result in results for row in result[1]]
    folder = Path(out) / "table1"
    ratios = ratio_table(definitions)
    title = f"Table 1, {sizes.n_train} training points, seed {seed}"
    paths = save_table(errors, folder, f"errors-{scale}", f"{title}: errors of all methods")
    paths += save_table(ratios, folder, f"ratios-{scale}", f"{title}: kernel PCA's error over the deep model's")
    paths += save_table(definitions, folder, f"definitions-{scale}", f"{title}: ratios by definition of the error")
    paths.append(write_text(folder / f"summary-{scale}.md", summary(errors, definitions)))
    paths += save_figure(draw(errors), folder, f"errors-{scale}")
    if verbose:
        print((folder / f"summary-{scale}.md").read_text(), end="")
        print(f"{time.perf_counter() - clock:.0f} s")
    return paths


def run_cell(dataset: str, noise: float, sizes: Sizes, seed: int) -> tuple[list[Row], list[Row]]:
    """Return the errors of all methods on one dataset at one noise level, and the ratios of the paper's protocol."""
    problem = make_problem(dataset, noise, sizes.n_train, sizes.n_validation, seed)
    with one_thread():
        estimate = noise_of(problem)
        results = {name: method(problem, sizes, estimate) for name, method in METHODS.items()}
        clock = time.perf_counter()
        protocol = candidates(problem, sizes.protocol)
        seconds = (time.perf_counter() - clock) / 2
    return _error_rows(problem, results, protocol, estimate, seconds), _ratio_rows(problem, protocol)


def _error_rows(
    problem: Problem, results: dict[str, Outcome], protocol: list[Candidate], estimate: float, seconds: float
) -> list[Row]:
    results = dict(results)
    for label, model in (("paper's kernel PCA (3)", "kernel PCA"), ("paper's deep model (2, 1)", "deep")):
        chosen = best(protocol, model, FIRST_MEASURE)
        widths = ", ".join(w if isinstance(w, str) else f"{w:g}" for w in chosen.bandwidths)
        results[label] = Outcome(chosen.points, f"σ²={widths}", seconds)
    bound = mean_squared_error(results["Bayes posterior mean"].points, problem.clean)
    rows = []
    for name in ROW_ORDER:
        result = results[name]
        error = mean_squared_error(result.points, problem.clean)
        rows.append(
            {
                "dataset": DATASETS[problem.dataset],
                "noise": problem.noise,
                "method": name,
                "MSE to clean": error,
                "relative to Bayes": error / bound,
                "mean distance to curve": float(problem.curve.distance(result.points).mean()),
                "chosen": result.chosen,
                "estimated noise": estimate,
                "seconds": round(result.seconds, 1),
            }
        )
    return rows


def _ratio_rows(problem: Problem, protocol: list[Candidate]) -> list[Row]:
    ratios = []
    for (normalized, steps), measure in itertools.product(VARIANTS, MEASURES):
        shallow, deep = (
            best(protocol, model, measure, normalized=normalized, steps=steps) for model in ("kernel PCA", "deep")
        )
        ratios.append(
            {
                "dataset": DATASETS[problem.dataset],
                "noise": problem.noise,
                "β": "projection" if normalized else "as published",
                "steps": steps or "converged",
                "measure": measure,
                "published": PUBLISHED[problem.noise][problem.dataset],
                "ratio": shallow.training[measure] / deep.training[measure],
                "kernel PCA": shallow.training[measure],
                "deep": deep.training[measure],
                "kernel PCA σ²": shallow.bandwidths[0],
                "deep σ²": " / ".join(str(w) for w in deep.bandwidths),
            }
        )
    return ratios


def ratio_table(definitions: list[Row]) -> list[Row]:
    """Return published and own ratio side by side, one row a noise level."""
    rows = []
    for noise in NOISES:
        row: Row = {"noise": noise}
        for entry in definitions:
            if entry["noise"] == noise and _key(entry) == ("as published", "converged", FIRST_MEASURE):
                row[f"{entry['dataset']} (published)"] = entry["published"]
                row[f"{entry['dataset']} (ours)"] = entry["ratio"]
        rows.append(row)
    return rows


def summary(errors: list[Row], definitions: list[Row]) -> str:
    """Return how the targets were met, in a few lines."""
    cells = {(row["dataset"], row["noise"]) for row in errors}
    value = {(row["dataset"], row["noise"], row["method"]): row["relative to Bayes"] for row in errors}
    deep = {cell: value[(*cell, "two layers, selected")] for cell in cells}
    one = {cell: value[(*cell, "one layer, selected")] for cell in cells}
    worst = max(deep, key=lambda cell: deep[cell])
    lines = [
        f"- Selected deep model at most 1.15 times Bayes in {sum(v <= 1.15 for v in deep.values())} of {len(cells)} "
        f"cells; worst {deep[worst]:.3f} ({worst[0]}, {worst[1]}).",
        f"- Selected deep model not above the selected one-layer model in "
        f"{sum(deep[cell] <= one[cell] for cell in cells)} of {len(cells)} cells "
        f"(worst one-layer {max(one.values()):.3f} times Bayes).",
        "- Ratios of the paper's protocol above 1, and at or above the published ones:",
    ]
    for key in dict.fromkeys(_key(row) for row in definitions):
        rows = [row for row in definitions if _key(row) == key]
        above = sum(row["ratio"] > 1 for row in rows)
        reached = sum(row["ratio"] >= row["published"] for row in rows)
        # How far the ratios are from the published ones, as a factor, in the middle of the cells.
        factor = float(np.exp(np.median([abs(np.log(row["ratio"] / row["published"])) for row in rows])))
        steps = key[1] if key[1] == "converged" else f"{key[1]} steps"
        lines.append(
            f"  - β {key[0]}, {steps}, {key[2]}: {above} and {reached} of {len(rows)}; off by a factor of {factor:.2f}"
        )
    return "\n".join(lines) + "\n"


def _key(row: Row) -> tuple[str, Any, str]:
    return row["β"], row["steps"], row["measure"]


def draw(errors: list[Row]) -> Any:
    """Return the figure: error relative to the Bayes posterior mean, one panel a dataset."""
    from drkm.plotting import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, style

    looks = {
        "noisy points": (GREY, "_"),
        "mean shift": (PURPLE, "v"),
        "scikit-learn KernelPCA": (ORANGE, "^"),
        "paper's kernel PCA (3)": (SKY, "X"),
        "paper's deep model (2, 1)": (GREEN, "P"),
        "one layer, selected": (VERMILION, "s"),
        "two layers, selected": (BLUE, "o"),
    }
    top = 3.0
    with style() as plt:
        figure, panels = plt.subplots(1, len(DATASETS), figsize=(9, 3.4), sharey=True, layout="constrained")
        for axes, title in zip(panels, DATASETS.values(), strict=True):
            axes.axhline(1, color="black", linewidth=0.8, label="Bayes posterior mean")
            above = dict.fromkeys(range(len(NOISES)), 0)
            for k, (method, (colour, marker)) in enumerate(looks.items()):
                rows = [row for row in errors if row["dataset"] == title and row["method"] == method]
                x = [NOISES.index(row["noise"]) + 0.09 * (k - 3) for row in rows]
                y = [row["relative to Bayes"] for row in rows]
                size = 60 if marker == "_" else 26
                # What lies above the axis is drawn at its edge, with the number.
                axes.scatter(
                    x, np.minimum(y, top), color=colour, marker=marker, s=size, label=method, zorder=3, clip_on=False
                )
                for place, value in zip(x, y, strict=True):
                    if value > top:
                        # Two numbers over one noise level would meet: the second goes above the first.
                        lift = (0, 6 + 9 * above[round(place)])
                        above[round(place)] += 1
                        axes.annotate(
                            f"{value:.3g}",
                            (place, top),
                            lift,
                            textcoords="offset points",
                            ha="center",
                            fontsize=7,
                            color=colour,
                        )
            axes.set_title(title, pad=26)
            axes.set_xticks(range(len(NOISES)), [str(noise) for noise in NOISES])
            axes.set_xlim(-0.45, len(NOISES) - 0.55)
            axes.set_ylim(0.9, top)
            axes.set_xlabel("noise $\\sigma_n$")
        panels[0].set_ylabel("MSE to clean / MSE of Bayes")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
