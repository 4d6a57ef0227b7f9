"""What the paper says about Table 1, and what we ask beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drkm.experiments.denoising._names import BOUND, NOISY, ONE_LAYER, PAPER_DEEP, TWO_LAYERS
from drkm.experiments.denoising._panels import missing
from drkm.experiments.denoising._problems import DATASETS, NOISES, PUBLISHED, SIZES
from drkm.experiments.denoising._table1_tables import as_published, mse_of
from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict

Cell = tuple[str, float]
Errors = Mapping[Cell, Mapping[str, float]]
#: how far above the error of the Bayes posterior mean a denoiser may be, and in how many cells two layers must not be
#: above one
TOLERATED = 1.15
WINS = 9
SIMPLE, COMPLICATED = ("square", "half_circle"), ("square_spiral", "squares_spiral_ring")
PAPER_POINTS = SIZES["paper"].n_train
CELLS: list[Cell] = [(dataset, noise) for noise in NOISES for dataset in DATASETS]


def judge(cells: Iterable[Row], ratios: Iterable[Row], *, points: int) -> list[Claim]:
    """Return the claims with their verdicts.

    Parameters
    ----------
    cells : iterable of dict
        Finished runs.
    ratios : iterable of dict
        As `drkm.experiments.denoising._table1_tables.ratios` gives them.
    points : int
        Training points of a cell.
    """
    ratios = list(ratios)
    ratio = {(row["curve"], row["noise"]): row["ratio"] for row in as_published(ratios)}
    every: dict[Cell, list[float]] = defaultdict(list)
    for row in ratios:
        every[row["curve"], row["noise"]].append(row["ratio"])
    mse = {(cell["curve"], cell["noise"]): mse_of(cell) for cell in cells}
    return [
        *(_published_ratio(cell, ratio.get(cell), every[cell], points) for cell in CELLS),
        *(claim(ratio) for claim in OF_RATIOS),
        *(claim(mse) for claim in OF_ERRORS),
    ]


def _published_ratio(cell: Cell, ratio: float | None, every: list[float], points: int) -> Claim:
    dataset, noise = cell
    published = PUBLISHED[noise][dataset]
    text = f"{DATASETS[dataset]}, σ_n = {noise}: the deep model denoises better than kernel PCA"
    if ratio is None:
        return missing(text, f"{published}")
    if ratio >= published:
        verdict, why = Verdict.HELD, "The ratio of the errors is at or above the published one"
    elif ratio <= 1:
        verdict, why = Verdict.FAILED, "Kernel PCA has the smaller error"
    elif points >= PAPER_POINTS:
        verdict, why = Verdict.FAILED, "Better than kernel PCA, but by less than published"
    else:
        verdict, why = Verdict.UNDECIDED, f"Better than kernel PCA, by less than published, which had {PAPER_POINTS}"
    among = f"by definition of the error {min(every):.2f} to {max(every):.2f}"
    return Claim(text, f"{published}", f"{ratio:.3g}", verdict, f"{why}; {among}; {points} points, one draw.")


def _gains_more(ratio: dict[Cell, float], noise: float) -> bool:
    return min(ratio[d, noise] for d in COMPLICATED) > max(ratio[d, noise] for d in SIMPLE)


def _gain_falls(ratio: dict[Cell, float], dataset: str) -> bool:
    gains = [ratio[dataset, noise] for noise in NOISES]
    return gains == sorted(gains, reverse=True)


def _worst(mse: Errors) -> str:
    relative = _relative(mse, TWO_LAYERS)
    dataset, noise = max(relative, key=lambda cell: relative[cell])
    return f"Worst: {relative[dataset, noise]:.3f} times ({DATASETS[dataset]}, σ_n = {noise}). "


def _on_average(mse: Errors) -> str:
    one, two = (_relative(mse, method).values() for method in (ONE_LAYER, TWO_LAYERS))
    means = f"{sum(two) / len(two):.4f} against {sum(one) / len(one):.4f}"
    return f"On average {means} times the error of the posterior mean. "


def _relative(mse: Errors, method: str) -> dict[Cell, float]:
    """Return the errors of a method over those of the posterior mean."""
    return {cell: errors[method] / errors[BOUND] for cell, errors in mse.items()}


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A claim that must hold for all of the cases, or for enough of them."""

    text: str
    published: str = ""
    over: Iterable[Any]
    unit: str = "cells"
    #: (what all cells have, case) → whether it holds there
    holds: Callable[[Any, Any], bool]
    why: str
    #: what all cells have → the beginning of the reason
    first: Callable[[Any], str] = lambda found: ""
    enough: int = 0

    def __call__(self, found: Mapping[Cell, Any]) -> Claim:
        """Return the claim with its verdict, which needs all cells."""
        if len(found) < len(CELLS):
            return missing(self.text, self.published)
        holds = [self.holds(found, case) for case in self.over]
        verdict = Verdict.HELD if sum(holds) >= (self.enough or len(holds)) else Verdict.FAILED
        measured = f"{sum(holds)} of {len(holds)} {self.unit}"
        return Claim(self.text, self.published, measured, verdict, self.first(found) + self.why)


#: about the ratios of the paper's two models by cell
OF_RATIOS = (
    Counted(
        text="The curves of Figures 2 and 3 gain more from depth than the square and the half circle",
        published="at every noise level",
        over=NOISES,
        unit="noise levels",
        holds=_gains_more,
        why="By the ratios above: the smaller of the two complicated curves against the larger of the two simple ones.",
    ),
    Counted(
        text="The gain is largest at the smallest noise, and falls as the noise grows",
        published="on every curve",
        over=DATASETS,
        unit="curves",
        holds=_gain_falls,
        why="By the ratios above, on one draw.",
    ),
)
#: about the errors of all methods by cell
OF_ERRORS = (
    Counted(
        text="The paper's deep model leaves points nearer to the clean ones than the noisy points were",
        published="implied; the paper does not show the noisy points",
        over=CELLS,
        holds=lambda mse, cell: mse[cell][PAPER_DEEP] < mse[cell][NOISY],
        why="Mean squared error to the clean point, iterated to convergence: a ratio above 1 alone is not denoising.",
    ),
    Counted(
        text=f"Two layers, selected, are within {TOLERATED} times the error of the Bayes posterior mean",
        over=CELLS,
        holds=lambda mse, cell: mse[cell][TWO_LAYERS] / mse[cell][BOUND] <= TOLERATED,
        first=_worst,
        why="Selected without clean points; one draw.",
    ),
    Counted(
        text=f"Two layers, selected, are not above one layer, selected with equal effort, in {WINS} of {len(CELLS)} "
        "cells",
        over=CELLS,
        holds=lambda mse, cell: mse[cell][TWO_LAYERS] <= mse[cell][ONE_LAYER],
        first=_on_average,
        why="Mean squared error to the clean point; one draw, and differences count however small.",
        enough=WINS,
    ),
)
