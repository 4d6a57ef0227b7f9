"""Figures 2 and 3: what each component of the paper's model reconstructs on its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drkm.experiments.denoising._names import TWO_LAYERS
from drkm.experiments.denoising._one_draw import RULE, missing, smaller
from drkm.experiments.denoising._panels import ALL, COMPONENTS, NOISE, TASKS, by_name, configuration, draw_panel, how
from drkm.experiments.denoising._panels import table as errors
from drkm.experiments.denoising._problems import SEED, SIZES, CurveSizes
from drkm.experiments.experiment import Row, SimpleExperiment
from drkm.experiments.section import Claim, Figure, ResultTable

CAPTION = """\
One component at a time, then all three, then two selected layers. Noisy points grey, denoised points blue, the true
curve as a thin line. A short distance to the curve alone can hide that part of it is lost: the gap is the mean distance
from a place on the curve to the nearest denoised point."""
FIRST, SECOND, DEEP = (name for name in COMPONENTS if name != ALL)


def component_figure(name: str, title: str, text: str, curve: str, place: int) -> SimpleExperiment:
    """Return the experiment of one curve, denoised by one component at a time."""
    return SimpleExperiment(
        name=name,
        title=title,
        place=place,
        tasks=TASKS,
        text=text,
        sizes=SIZES,
        runs=lambda sizes: [configuration(curve, sizes)],
        tables=lambda found: [ResultTable("errors", "Errors of the training points.", errors(found))],
        figures=lambda found: [Figure(name, CAPTION, lambda: draw(found[0]))],
        claims=lambda found, sizes: _claims(by_name(found[0]) if found else None),
        settings=_settings,
    )


def _settings(found: list[Row], sizes: CurveSizes) -> Row:
    settings: Row = {"training points": sizes.n_train, "noise σ_n": NOISE, "seed of the data": SEED}
    return settings | ({"paper's model": how(found[0])} if found else {})


def _claims(panels: Mapping[str, Row] | None) -> list[Claim]:
    return [
        _better(panels, "distance", "lies nearer to the curve", "mean distance to the curve"),
        _better(panels, "gap", "leaves less of the curve out", "mean gap along the curve"),
    ]


def _better(panels: Mapping[str, Row] | None, key: str, what: str, measure: str) -> Claim:
    text = f"The component of the second layer, alone, {what} than either of the first layer"
    if panels is None:
        return missing(text, "by eye")
    first, second, deep = (panels[name][key] for name in (FIRST, SECOND, DEEP))
    return Claim(
        text,
        "by eye",
        f"{deep:.3f} against {first:.3f} and {second:.3f}",
        smaller(deep, min(first, second)),
        f"By the {measure}, with the bandwidth and steps at which the second layer does best on validation points. "
        + RULE,
    )


def draw(result: Row) -> Any:
    """Return the figure: one panel for each component, and for all of them."""
    from drkm.plotting import style

    names = [*COMPONENTS, TWO_LAYERS]
    height = 1.75 if result["curve"] == "square_spiral" else 3.2
    with style() as plt:
        figure, axes = plt.subplots(2, 3, figsize=(9, 2 * height), layout="constrained")
        places = axes.ravel()
        for place, name in zip(places, names, strict=False):
            panel = by_name(result)[name]
            draw_panel(place, result, name, f"{name}\ndistance {panel['distance']:.3f}, gap {panel['gap']:.3f}")
        handles, labels = places[0].get_legend_handles_labels()
        places[-1].set_axis_off()
        places[-1].legend(handles, labels, loc="center", markerscale=3)
    return figure
