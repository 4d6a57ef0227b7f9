"""The paper's claims about Table 1, and further ones of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drkm.experiments.denoising._panels import missing
from drkm.experiments.denoising._problems import (
    BOUND,
    DATASETS,
    NOISES,
    NOISY,
    ONE_LAYER,
    PAPER_DEEP,
    PUBLISHED,
    SIZES,
    TWO_LAYERS,
)
from drkm.experiments.denoising._table1_tables import AS_PUBLISHED, mse_of
from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict
from drkm.experiments.study.rows import chosen

Cell = tuple[str, float]
#: largest tolerated error relative to the Bayes posterior mean, and number of cells in which two layers must not be
#: worse than one
TOLERATED = 1.15
WINS = 9
SIMPLE, COMPLICATED = ("square", "half_circle"), ("square_spiral", "squares_spiral_ring")
PAPER_POINTS = SIZES["paper"].n_train
CELLS: list[Cell] = [(dataset, noise) for noise in NOISES for dataset in DATASETS]


def judge(cells: list[Row], ratios: list[Row], points: int) -> Iterator[Claim]:
    """Yield the claims about finished cells with `points` training points, and about the ratios of their errors."""
    ratio = {(row["curve"], row["noise"]): row["ratio"] for row in chosen(ratios, **AS_PUBLISHED)}
    mse = {(cell["curve"], cell["noise"]): mse_of(cell) for cell in cells}
    for dataset, noise in CELLS:
        every = [row["ratio"] for row in chosen(ratios, curve=dataset, noise=noise)]
        yield _published_ratio((dataset, noise), ratio.get((dataset, noise)), every, points)
    # All other claims need every cell.
    yield from _about_ratios(ratio if len(ratio) == len(CELLS) else {})
    yield from _about_errors(mse if len(mse) == len(CELLS) else {})


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


def _about_ratios(ratio: Mapping[Cell, float]) -> Iterator[Claim]:
    """Yield the claims about the ratios of the paper's two models by cell."""
    more = [
        min(ratio[curve, noise] for curve in COMPLICATED) > max(ratio[curve, noise] for curve in SIMPLE)
        for noise in (NOISES if ratio else ())
    ]
    text = "The curves of Figures 2 and 3 gain more from depth than the square and the half circle"
    why = "By the ratios above: the smaller of the two complicated curves against the larger of the two simple ones."
    yield _counted(text, more, why, "at every noise level", unit="noise levels")
    gains = [[ratio[curve, noise] for noise in NOISES] for curve in (DATASETS if ratio else ())]
    falls = [each == sorted(each, reverse=True) for each in gains]
    text = "The gain is largest at the smallest noise, and falls as the noise grows"
    yield _counted(text, falls, "By the ratios above, on one draw.", "on every curve", unit="curves")


def _about_errors(mse: Mapping[Cell, Mapping[str, float]]) -> Iterator[Claim]:
    """Yield the claims about the errors of all methods by cell."""
    nearer = [errors[PAPER_DEEP] < errors[NOISY] for errors in mse.values()]
    text = "The paper's deep model leaves points nearer to the clean ones than the noisy points were"
    why = "Mean squared error to the clean point, iterated to convergence: a ratio above 1 alone is not denoising."
    yield _counted(text, nearer, why, "implied; the paper does not show the noisy points")

    one, two = (
        {cell: errors[method] / errors[BOUND] for cell, errors in mse.items()} for method in (ONE_LAYER, TWO_LAYERS)
    )
    near = [relative <= TOLERATED for relative in two.values()]
    text = f"Two layers, selected, are within {TOLERATED} times the error of the Bayes posterior mean"
    yield _counted(text, near, f"{_worst(two)}Selected without clean points; one draw.")
    wins = [errors[TWO_LAYERS] <= errors[ONE_LAYER] for errors in mse.values()]
    text = f"Two layers, selected, are not above one layer, selected with equal effort, in {WINS} of {len(CELLS)} cells"
    why = "Mean squared error to the clean point; one draw, and differences count however small."
    yield _counted(text, wins, _on_average(one, two) + why, enough=WINS)


def _worst(relative: Mapping[Cell, float]) -> str:
    if not relative:
        return ""
    dataset, noise = max(relative, key=lambda cell: relative[cell])
    return f"Worst: {relative[dataset, noise]:.3f} times ({DATASETS[dataset]}, σ_n = {noise}). "


def _on_average(one: Mapping[Cell, float], two: Mapping[Cell, float]) -> str:
    if not one:
        return ""
    means = f"{sum(two.values()) / len(two):.4f} against {sum(one.values()) / len(one):.4f}"
    return f"On average {means} times the error of the posterior mean. "


def _counted(
    text: str, holds: list[bool], why: str, published: str = "", *, unit: str = "cells", enough: int = 0
) -> Claim:
    """Judge a claim by the number of cases in which it holds: all, or enough; without cases it is undecided."""
    if not holds:
        return missing(text, published)
    verdict = Verdict.HELD if sum(holds) >= (enough or len(holds)) else Verdict.FAILED
    return Claim(text, published, f"{sum(holds)} of {len(holds)} {unit}", verdict, why)
