"""Figure 3: two squares, a spiral and a ring, denoised by one component at a time."""

from __future__ import annotations

from drkm.experiments.denoising._panels import panel_figure
from drkm.experiments.denoising.figure2 import CAPTION, PANELS, by_component

TEXT = """\
The same as Figure 2 on a more complicated curve. The paper sees loops of the spiral and sides of the squares joined by
the first component of the first layer, the inner circle of the ring lost by the second, and both reproduced by the
component of the second layer."""
TITLE = "Figure 3: two squares, a spiral and a ring"

EXPERIMENT = panel_figure("figure3", TITLE, 4, TEXT, CAPTION, PANELS, ["squares_spiral_ring"], by_component)
