"""Figure 3: two squares, a spiral and a ring, denoised by one component at a time."""

from __future__ import annotations

from drkm.experiments.denoising._component_figure import component_figure

TEXT = """\
The same as Figure 2 on a more complicated curve. The paper sees loops of the spiral and sides of the squares joined by
the first component of the first layer, the inner circle of the ring lost by the second, and both reproduced by the
component of the second layer."""

EXPERIMENT = component_figure(
    "figure3", "Figure 3: two squares, a spiral and a ring", TEXT, curve="squares_spiral_ring", place=4
)
