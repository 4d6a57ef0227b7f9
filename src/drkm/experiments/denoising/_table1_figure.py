"""The figure beside Table 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from drkm.experiments.denoising._problems import (
    BOUND,
    DATASETS,
    MEAN_SHIFT,
    NOISES,
    NOISY,
    ONE_LAYER,
    PAPER_DEEP,
    PAPER_KPCA,
    RIVAL,
    TWO_LAYERS,
)
from drkm.experiments.denoising._table1_tables import relative_of
from drkm.experiments.experiment import Row
from drkm.plotting import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, style

#: colour and marker of a method
LOOKS = {
    NOISY: (GREY, "_"),
    MEAN_SHIFT: (PURPLE, "v"),
    RIVAL: (ORANGE, "^"),
    PAPER_KPCA: (SKY, "X"),
    PAPER_DEEP: (GREEN, "P"),
    ONE_LAYER: (VERMILION, "s"),
    TWO_LAYERS: (BLUE, "o"),
}
#: upper end of the axis; larger values are drawn at its edge and labelled with the number
TOP = 3.0


def draw(cells: list[Row]) -> Any:
    """Return the figure: error relative to the Bayes posterior mean, one panel per dataset."""
    with style() as plt:
        figure, panels = plt.subplots(1, len(DATASETS), figsize=(9, 3.4), sharey=True, layout="constrained")
        for axes, (dataset, title) in zip(panels, DATASETS.items(), strict=True):
            _panel(axes, [cell for cell in cells if cell["curve"] == dataset])
            axes.set_title(title, pad=26)
        panels[0].set_ylabel("MSE to clean / MSE of Bayes")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _panel(axes: Any, cells: list[Row]) -> None:
    axes.axhline(1, color="black", linewidth=0.8, label=BOUND)
    above = dict.fromkeys(range(len(NOISES)), 0)
    for k, (method, (colour, marker)) in enumerate(LOOKS.items()):
        x = [NOISES.index(cell["noise"]) + 0.09 * (k - 3) for cell in cells]
        y = [relative_of(cell)[method] for cell in cells]
        size = 60 if marker == "_" else 26
        axes.scatter(x, np.minimum(y, TOP), color=colour, marker=marker, s=size, label=method, zorder=3, clip_on=False)
        for place, value in zip(x, y, strict=True):
            if value > TOP:
                # Stack the numbers of one noise level, which would overlap.
                lift = (0, 6 + 9 * above[round(place)])
                above[round(place)] += 1
                axes.annotate(
                    f"{value:.3g}",
                    (place, TOP),
                    lift,
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                    color=colour,
                )
    axes.set_xticks(range(len(NOISES)), [str(noise) for noise in NOISES])
    axes.set_xlim(-0.45, len(NOISES) - 0.55)
    axes.set_ylim(0.9, TOP)
    axes.set_xlabel("noise $\\sigma_n$")
