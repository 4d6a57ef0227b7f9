"""Figure 2: a square and a spiral, denoised by one component at a time."""

from __future__ import annotations

from drkm.experiments.denoising._components import CAPTION, CLAIMS, PANELS
from drkm.experiments.denoising._panels import panel_figure

TEXT = """\
The paper denoises a square beside a spiral by one component at a time, s = (2, 1): the first component of the first
layer learns the shapes with outliers, the second the details but loses part of the square, and the component of the
second layer reproduces both. Whether it lies nearest to the curve and leaves least of it out can be measured."""

EXPERIMENT = panel_figure(
    "figure2", "Figure 2: a square and a spiral", 3, TEXT, CAPTION, PANELS, {"square_spiral": CLAIMS}
)
