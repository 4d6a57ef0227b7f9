"""The claims about Table 1: the published ratios cell by cell, their pattern, and the errors of all methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from drkm.experiments.denoising import _problems as problems
from drkm.experiments.denoising._problems import DATASETS, NOISES
from drkm.experiments.denoising._verdicts import counted, missing
from drkm.experiments.experiment import Row
from drkm.experiments.section import Claim, Verdict
from drkm.experiments.study.rows import chosen, pivoted

#: the definition of the error by which claims are judged, where the paper leaves it open
AS_PUBLISHED = {"β": "as published", "steps": "converged", "measure": problems.FIRST_MEASURE}
#: largest tolerated error relative to the Bayes posterior mean, and number of cells in which two layers must not be
#: worse than one
TOLERATED, WINS = 1.15, 9
SIMPLE, COMPLICATED = ("square", "half_circle"), ("square_spiral", "squares_spiral_ring")
PAPER_POINTS = problems.SIZES["paper"].n_train
#: curve and noise level
Cell = tuple[str, float]
CELLS: list[Cell] = [(curve, noise) for noise in NOISES for curve in DATASETS]


def judge(ratios: list[Row], errors: list[Row], points: int) -> Iterator[Claim]:
    """Yield all claims; `ratios` has a row per cell and definition of the error, `errors` one per cell and method."""
    ratio = {row["cell"]: row["ours"] for row in chosen(ratios, **AS_PUBLISHED)}
    for cell in CELLS:
        every = [row["ours"] for row in chosen(ratios, cell=cell)]
        yield _published_ratio(cell, ratio.get(cell), every, points)
    # All other claims need every cell.
    yield from _about_ratios(ratio if len(ratio) == len(CELLS) else {})
    relative = pivoted(errors, ["cell"], "{method}", "relative")
    yield from _about_errors(relative if len(relative) == len(CELLS) else [])


def _published_ratio(cell: Cell, ratio: float | None, every: list[float], points: int) -> Claim:
    dataset, noise = cell
    published = problems.PUBLISHED[noise][dataset]
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
    yield counted(text, more, why, "at every noise level", unit="noise levels")
    gains = [[ratio[curve, noise] for noise in NOISES] for curve in (DATASETS if ratio else ())]
    falls = [each == sorted(each, reverse=True) for each in gains]
    text = "The gain is largest at the smallest noise, and falls as the noise grows"
    yield counted(text, falls, "By the ratios above, on one draw.", "on every curve", unit="curves")


def _about_errors(relative: list[Row]) -> Iterator[Claim]:
    """Yield the claims about the errors of all methods, relative to the Bayes posterior mean; one row per cell."""
    text = "The paper's deep model leaves points nearer to the clean ones than the noisy points were"
    why = "Mean squared error to the clean point, iterated to convergence: a ratio above 1 alone is not denoising."
    nearer = [row[problems.PAPER_DEEP] < row[problems.NOISY] for row in relative]
    yield counted(text, nearer, why, "implied; the paper does not show the noisy points")

    text = f"Two layers, selected, are within {TOLERATED} times the error of the Bayes posterior mean"
    near = [row[problems.TWO_LAYERS] <= TOLERATED for row in relative]
    yield counted(text, near, f"{_worst(relative)}Selected without clean points; one draw.")
    text = f"Two layers, selected, are not above one layer, selected with equal effort, in {WINS} of {len(CELLS)} cells"
    why = "Mean squared error to the clean point; one draw, and differences count however small."
    wins = [row[problems.TWO_LAYERS] <= row[problems.ONE_LAYER] for row in relative]
    yield counted(text, wins, _on_average(relative) + why, enough=WINS)


def _worst(relative: list[Row]) -> str:
    if not relative:
        return ""
    worst = max(relative, key=lambda row: row[problems.TWO_LAYERS])
    dataset, noise = worst["cell"]
    return f"Worst: {worst[problems.TWO_LAYERS]:.3f} times ({DATASETS[dataset]}, σ_n = {noise}). "


def _on_average(relative: list[Row]) -> str:
    if not relative:
        return ""
    one, two = (fmean(row[name] for row in relative) for name in (problems.ONE_LAYER, problems.TWO_LAYERS))
    return f"On average {two:.4f} against {one:.4f} times the error of the posterior mean. "
