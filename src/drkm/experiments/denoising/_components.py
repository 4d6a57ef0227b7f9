"""What Figures 2 and 3 have in common: panels and claims about each component of the paper's model on its own."""

from __future__ import annotations

from drkm.experiments.denoising._names import TWO_LAYERS
from drkm.experiments.denoising._panels import ALL, COMPONENTS, Compared, Panels

CAPTION = """\
One component at a time, then all three, then two selected layers. Noisy points grey, denoised points blue, the true
curve as a thin line. A short distance to the curve alone can hide that part of it is lost: the gap is the mean distance
from a place on the curve to the nearest denoised point."""
PANELS = dict.fromkeys((*COMPONENTS, TWO_LAYERS), "{name}\ndistance {distance:.3f}, gap {gap:.3f}")


def _better(key: str, what: str, measure: str) -> Compared:
    def errors(panels: Panels) -> tuple[float, float, str]:
        first, second, deep = (panels[name][key] for name in COMPONENTS if name != ALL)
        return deep, min(first, second), f"{deep:.3f} against {first:.3f} and {second:.3f}"

    return Compared(
        text=f"The component of the second layer, alone, {what} than either of the first layer",
        published="by eye",
        errors=errors,
        why=f"By the {measure}, with the bandwidth and steps at which the second layer does best on validation points.",
    )


CLAIMS = (
    _better("distance", "lies nearer to the curve", "mean distance to the curve"),
    _better("gap", "leaves less of the curve out", "mean gap along the curve"),
)
