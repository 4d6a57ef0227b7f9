"""Figure 1: a square and a half circle, noisy and denoised."""

from __future__ import annotations

from drkm.experiments.denoising._panels import ALL, NOISE, Panels, panel_figure
from drkm.experiments.denoising._problems import BOUND, DATASETS, NOISY, TWO_LAYERS
from drkm.experiments.denoising._verdicts import smaller_error
from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim

TEXT = f"""\
Two curves with noise of standard deviation {NOISE}, denoised by the paper's model with two components in the first
layer and one in the second. Its bandwidth and number of steps are those at which its second layer alone has the least
error on validation points. Beside it stand two layers whose components and bandwidths were selected without clean
points, and the Bayes posterior mean."""
CAPTION = """\
Noisy points grey, denoised points blue, the true curve as a thin line; above each panel the mean squared error to the
clean points and the mean distance to the curve."""
ERRORS = "\nMSE {mse:.4f}, distance {distance:.3f}"


def _captures(curve: str, panels: Panels) -> list[Claim]:
    text = f"{DATASETS[curve]}: the deep model, s = (2, 1), captures the shape of the data"
    why = "Asked for: both errors smaller than those of the noisy points."
    return [smaller_error(text, _errors(panels[ALL], panels[NOISY]) if panels else None, why, "by eye")]


def _errors(now: Row, before: Row) -> tuple[float, float, str]:
    measured = f"distance to the curve {before['distance']:.3f} → {now['distance']:.3f}, "
    measured += f"MSE {before['mse']:.4f} → {now['mse']:.4f}"
    return max(now["mse"] / before["mse"], now["distance"] / before["distance"]), 1.0, measured


EXPERIMENT = panel_figure(
    "figure1",
    "Figure 1: a square and a half circle, denoised",
    2,
    TEXT,
    CAPTION,
    {
        ALL: "paper's model, s = (2, 1)" + ERRORS,
        TWO_LAYERS: "{name}: layer 1 of {selected}" + ERRORS,
        BOUND: "{name}" + ERRORS,
    },
    ("square", "half_circle"),
    _captures,
)
