"""What Figures 1 to 3 show of their runs: one curve each, denoised by the paper's model and others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from drkm.datasets.toy2d import CURVES
from drkm.experiments.denoising._names import BOUND, NOISY, TWO_LAYERS
from drkm.experiments.denoising._problems import DATASETS, SEED, CurveSizes
from drkm.experiments.experiment import MEASURED, MEASURED_ERROR, Row
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import Task
from drkm.validation import parts

NOISE = 0.1
ALL = "all three components"
COMPONENTS = {
    "layer 1, component 1": [(1, 0)],
    "layer 1, component 2": [(1, 1)],
    "layer 2, component 1": [(2, 0)],
    ALL: None,
}
#: what the run of a curve holds
RESULT = parts.group(
    {
        "σ²": MEASURED_ERROR,
        "steps": parts.nullable(parts.count()),
        "selected": parts.several(parts.count()),
        "panels": parts.entries(
            "name",
            (NOISY, *COMPONENTS, TWO_LAYERS, BOUND),
            {
                **dict.fromkeys(("mse", "distance", "gap"), MEASURED_ERROR),
                "points": parts.several(parts.each([MEASURED, MEASURED]), least=1),
            },
        ),
    },
    others=True,
)
TASKS = {"denoise-panels": Task(f"{__package__}._panels_run:run_panels", revision=4, result=RESULT)}


def configuration(curve: str, sizes: CurveSizes) -> Configuration:
    """Return the run of one curve."""
    return Configuration("denoise-panels", {"curve": curve, "noise": NOISE, "sizes": asdict(sizes)}, SEED)


def table(results: Iterable[Row]) -> list[Row]:
    """Return the errors of the panels, one row each."""
    return [
        {
            "curve": DATASETS[result["curve"]],
            "points": panel["name"],
            "MSE to clean": panel["mse"],
            "mean distance to the curve": panel["distance"],
            "mean gap along the curve": panel["gap"],
        }
        for result in results
        for panel in result["panels"]
    ]


def by_name(result: Row) -> dict[str, Row]:
    """Return the panels of a run by their name."""
    return {panel["name"]: panel for panel in result["panels"]}


def how(result: Row) -> str:
    """Return how the paper's model was run."""
    return f"σ_1² = {result['σ²']:g}, steps: {result['steps'] or 'to convergence'}"


def draw_panel(axes: Any, result: Row, name: str, title: str) -> None:
    """Draw one panel: noisy points grey, denoised blue, the true curve as a thin line."""
    from drkm.plotting import scatter_before_after

    panels = by_name(result)
    noisy, points = (np.array(panels[key]["points"]) for key in (NOISY, name))
    curve = CURVES[result["curve"]]().quadrature(1500)[0]
    scatter_before_after(axes, noisy, points, title, curve)
