"""Figure 3: two squares, a spiral and a ring, denoised by one component at a time."""

from __future__ import annotations

from drkm.experiments.denoising._component_figure import component_section
from drkm.experiments.denoising._panels import configuration
from drkm.experiments.section import Section
from drkm.runs.configuration import Configuration, Results

TITLE = "Figure 3: two squares, a spiral and a ring"
TEXT = """\
The same as Figure 2 on a more complicated curve. The paper sees loops of the spiral and sides of the squares joined by
the first component of the first layer, the inner circle of the ring lost by the second, and both reproduced by the
component of the second layer."""
DATASET = "squares_spiral_ring"


def configurations(scale: str) -> list[Configuration]:
    """Return the one run of the figure."""
    return [configuration(DATASET, scale)]


def section(results: Results, scale: str) -> Section:
    """Return what the run shows."""
    return component_section("figure3", TITLE, TEXT, DATASET, results, scale)
