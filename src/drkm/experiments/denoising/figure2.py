"""Figure 2: a square and a spiral, denoised by one component at a time."""

from __future__ import annotations

from drkm.experiments.denoising._component_figure import component_section
from drkm.experiments.denoising._panels import configuration
from drkm.experiments.section import Section
from drkm.runs.configuration import Configuration, Results

TITLE = "Figure 2: a square and a spiral"
TEXT = """\
The paper denoises a square beside a spiral by one component at a time, s = (2, 1): the first component of the first
layer learns the shapes with outliers, the second the details but loses part of the square, and the component of the
second layer reproduces both. Whether it lies nearest to the curve and leaves least of it out can be measured."""
DATASET = "square_spiral"


def configurations(scale: str) -> list[Configuration]:
    """Return the one run of the figure."""
    return [configuration(DATASET, scale)]


def section(results: Results, scale: str) -> Section:
    """Return what the run shows."""
    return component_section("figure2", TITLE, TEXT, DATASET, results, scale)
