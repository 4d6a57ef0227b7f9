"""Figure 1: a square and a half circle, noisy and denoised."""

from __future__ import annotations

from typing import Any

from drkm.experiments.denoising._names import BOUND, NOISY, TWO_LAYERS
from drkm.experiments.denoising._one_draw import RULE, missing, smaller
from drkm.experiments.denoising._panels import ALL, NOISE, TASKS, by_name, configuration, draw_panel, how, table
from drkm.experiments.denoising._problems import DATASETS, SEED, SIZES, CurveSizes
from drkm.experiments.experiment import Row, SimpleExperiment
from drkm.experiments.section import Claim, Figure, ResultTable

TEXT = f"""\
Two curves with noise of standard deviation {NOISE}, denoised by the paper's model with two components in the first
layer and one in the second. Its bandwidth and number of steps are those at which its second layer alone has the least
error on validation points. Beside it stand two layers whose components and bandwidths were selected without clean
points, and the Bayes posterior mean."""
CAPTION = """\
Noisy points grey, denoised points blue, the true curve as a thin line; above each panel the mean squared error to the
clean points and the mean distance to the curve."""
CURVES = ("square", "half_circle")


def _errors(found: list[Row]) -> list[ResultTable]:
    rows = [row for row in table(found) if not row["points"].startswith("layer")]
    return [ResultTable("errors", "Errors of the training points.", rows)]


def _settings(found: list[Row], sizes: CurveSizes) -> Row:
    settings: Row = {"training points": sizes.n_train, "noise σ_n": NOISE, "seed of the data": SEED}
    return settings | {f"paper's model, {DATASETS[result['curve']]}": how(result) for result in found}


def _claim(dataset: str, found: list[Row]) -> Claim:
    text = f"{DATASETS[dataset]}: the deep model, s = (2, 1), captures the shape of the data"
    published = "by eye"
    result = next((row for row in found if row["curve"] == dataset), None)
    if result is None:
        return missing(text, published)
    panels = by_name(result)
    mse, noisy = panels[ALL]["mse"], panels[NOISY]["mse"]
    distance, before = panels[ALL]["distance"], panels[NOISY]["distance"]
    return Claim(
        text,
        published,
        f"distance to the curve {before:.3f} → {distance:.3f}, MSE {noisy:.4f} → {mse:.4f}",
        smaller(max(mse / noisy, distance / before), 1.0),
        f"Asked for: both errors smaller than those of the noisy points. {RULE}",
    )


def draw(found: list[Row]) -> Any:
    """Return the figure: a row for each curve, a panel for each model."""
    from drkm.plotting import style

    with style() as plt:
        heights = [1.5 if result["curve"] == "square" else 1 for result in found]
        figure, axes = plt.subplots(
            len(found),
            3,
            figsize=(9, 2.1 * sum(heights) + 0.3),
            layout="constrained",
            height_ratios=heights,
            squeeze=False,
        )
        for line, result in zip(axes, found, strict=True):
            titles = {
                ALL: "paper's model, s = (2, 1)",
                TWO_LAYERS: f"{TWO_LAYERS}: layer 1 of {tuple(result['selected'])}",
                BOUND: BOUND,
            }
            for place, (name, title) in zip(line, titles.items(), strict=True):
                panel = by_name(result)[name]
                error = f"MSE {panel['mse']:.4f}, distance {panel['distance']:.3f}"
                draw_panel(place, result, name, f"{title}\n{error}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, markerscale=3)
    return figure


EXPERIMENT = SimpleExperiment(
    name="figure1",
    title="Figure 1: a square and a half circle, denoised",
    place=2,
    tasks=TASKS,
    text=TEXT,
    sizes=SIZES,
    runs=lambda sizes: [configuration(curve, sizes) for curve in CURVES],
    tables=_errors,
    figures=lambda found: [Figure("figure1", CAPTION, lambda: draw(found))],
    claims=lambda found, sizes: [_claim(curve, found) for curve in CURVES],
    settings=_settings,
)
