"""Figure 2: a square and a spiral, denoised by one component at a time."""

from __future__ import annotations

from collections.abc import Iterator

from drkm.experiments.denoising._panels import ALL, COMPONENTS, Panels, panel_figure
from drkm.experiments.denoising._problems import TWO_LAYERS
from drkm.experiments.denoising._verdicts import smaller_error
from drkm.experiments.section import Claim

TEXT = """\
The paper denoises a square beside a spiral by one component at a time, s = (2, 1): the first component of the first
layer learns the shapes with outliers, the second the details but loses part of the square, and the component of the
second layer reproduces both. Whether it lies nearest to the curve and leaves least of it out can be measured."""
CAPTION = """\
One component at a time, then all three, then two selected layers. Noisy points grey, denoised points blue, the true
curve as a thin line. A short distance to the curve alone can hide that part of it is lost: the gap is the mean distance
from a place on the curve to the nearest denoised point."""
PANELS = dict.fromkeys((*COMPONENTS, TWO_LAYERS), "{name}\ndistance {distance:.3f}, gap {gap:.3f}")


def by_component(curve: str, panels: Panels) -> Iterator[Claim]:
    """Yield the claims about each component of the paper's model on its own."""
    for key, what, measure in (
        ("distance", "lies nearer to the curve", "mean distance to the curve"),
        ("gap", "leaves less of the curve out", "mean gap along the curve"),
    ):
        errors = None
        if panels:
            first, second, deep = (panels[name][key] for name in COMPONENTS if name != ALL)
            errors = deep, min(first, second), f"{deep:.3f} against {first:.3f} and {second:.3f}"
        text = f"The component of the second layer, alone, {what} than either of the first layer"
        why = (
            f"By the {measure}, with the bandwidth and steps at which the second layer does best on validation points."
        )
        yield smaller_error(text, errors, why, "by eye")


TITLE = "Figure 2: a square and a spiral"
EXPERIMENT = panel_figure("figure2", TITLE, 3, TEXT, CAPTION, PANELS, ["square_spiral"], by_component)
