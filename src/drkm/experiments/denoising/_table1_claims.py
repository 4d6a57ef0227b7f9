"""What the paper says about Table 1, and what we ask beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from drkm.experiments.denoising._names import BOUND, NOISY, ONE_LAYER, PAPER_DEEP, TWO_LAYERS
from drkm.experiments.denoising._one_draw import missing
from drkm.experiments.denoising._problems import DATASETS, NOISES, PUBLISHED, SIZES
from drkm.experiments.denoising._table1_tables import as_published, mse_of
from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict

Cell = tuple[str, float]
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
        _complicated_curves_gain_more(ratio),
        _gain_shrinks_with_noise(ratio),
        _denoises_at_all(mse),
        _near_the_bound(mse),
        _depth_helps(mse),
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


def _complicated_curves_gain_more(ratio: dict[Cell, float]) -> Claim:
    text = "The curves of Figures 2 and 3 gain more from depth than the square and the half circle"

    def holds(noise: float) -> bool:
        return min(ratio[d, noise] for d in COMPLICATED) > max(ratio[d, noise] for d in SIMPLE)

    return _counted(
        text,
        "at every noise level",
        NOISES,
        holds,
        len(ratio) == len(CELLS),
        "noise levels",
        "By the ratios above: the smaller of the two complicated curves against the larger of the two simple ones.",
    )


def _gain_shrinks_with_noise(ratio: dict[Cell, float]) -> Claim:
    text = "The gain is largest at the smallest noise, and falls as the noise grows"

    def holds(dataset: str) -> bool:
        gains = [ratio[dataset, noise] for noise in NOISES]
        return gains == sorted(gains, reverse=True)

    return _counted(
        text, "on every curve", DATASETS, holds, len(ratio) == len(CELLS), "curves", "By the ratios above, on one draw."
    )


def _denoises_at_all(mse: dict[Cell, dict[str, float]]) -> Claim:
    return _counted(
        "The paper's deep model leaves points nearer to the clean ones than the noisy points were",
        "implied; the paper does not show the noisy points",
        CELLS,
        lambda cell: mse[cell][PAPER_DEEP] < mse[cell][NOISY],
        len(mse) == len(CELLS),
        "cells",
        "Mean squared error to the clean point, iterated to convergence: a ratio above 1 alone is not denoising.",
    )


def _relative(mse: dict[Cell, dict[str, float]], method: str) -> dict[Cell, float]:
    """Return the errors of a method over those of the posterior mean."""
    return {cell: errors[method] / errors[BOUND] for cell, errors in mse.items()}


def _near_the_bound(mse: dict[Cell, dict[str, float]]) -> Claim:
    relative = _relative(mse, TWO_LAYERS)
    worst = max(relative, key=lambda cell: relative[cell], default=None)
    why = "Selected without clean points; one draw."
    if worst is not None:
        why = f"Worst: {relative[worst]:.3f} times ({DATASETS[worst[0]]}, σ_n = {worst[1]}). {why}"
    return _counted(
        f"Two layers, selected, are within {TOLERATED} times the error of the Bayes posterior mean",
        "",
        CELLS,
        lambda cell: relative[cell] <= TOLERATED,
        len(mse) == len(CELLS),
        "cells",
        why,
    )


def _depth_helps(mse: dict[Cell, dict[str, float]]) -> Claim:
    one, two = (_relative(mse, method) for method in (ONE_LAYER, TWO_LAYERS))
    why = "Mean squared error to the clean point; one draw, and differences count however small."
    if mse:
        means = f"{sum(two.values()) / len(two):.4f} against {sum(one.values()) / len(one):.4f}"
        why = f"On average {means} times the error of the posterior mean. {why}"
    return _counted(
        f"Two layers, selected, are not above one layer, selected with equal effort, in {WINS} of {len(CELLS)} cells",
        "",
        CELLS,
        lambda cell: two[cell] <= one[cell],
        len(mse) == len(CELLS),
        "cells",
        why,
        enough=WINS,
    )


def _counted(
    text: str,
    published: str,
    over: Iterable[Any],
    holds: Callable[[Any], bool],
    complete: bool,
    unit: str,
    why: str,
    enough: int | None = None,
) -> Claim:
    """Return a claim that must hold for all of the cases, or for enough of them."""
    over = list(over)
    if not complete:
        return missing(text, published)
    count = sum(map(holds, over))
    verdict = Verdict.HELD if count >= (enough or len(over)) else Verdict.FAILED
    return Claim(text, published, f"{count} of {len(over)} {unit}", verdict, why)
