"""Handwritten digits with Gaussian and with salt-and-pepper noise: noisy, kernel PCA, ours, clean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from drkm.experiments.denoising._problems import SEED
from drkm.experiments.denoising._verdicts import smaller_error
from drkm.experiments.experiment import MEASURED, MEASURED_ERROR, Row, SimpleExperiment
from drkm.experiments.section import Claim, Figure, ResultTable
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import Task
from drkm.validation import parts

TEXT = """\
scikit-learn's handwritten digits with Gaussian noise and with salt and pepper; the paper has no such experiment.
Models are trained on noisy images alone and denoise others. Bandwidths and components have the least estimated risk on
held-out noisy images, with as many candidates for one layer as for two. That estimate presumes Gaussian noise, so salt
and pepper is a test of it as well."""
CAPTION = """\
Test images, one block per kind of noise, one line per method; the mean squared error per pixel is
over all test images."""
#: kind of noise → its level: standard deviation or share of corrupted pixels
LEVELS = {"gaussian": 0.3, "salt and pepper": 0.2}
LABELS = {"gaussian": "Gaussian, σ_n = 0.3", "salt and pepper": "salt and pepper, 20 % of the pixels"}
NOISY, RIVAL, ONE, TWO, CLEAN = "noisy", "scikit-learn KernelPCA", "one layer", "two layers", "clean"
#: result of a run; images have 8×8 pixels
RESULT = parts.group(
    {
        "estimated noise": MEASURED_ERROR,
        "methods": parts.entries(
            "method",
            (NOISY, RIVAL, ONE, TWO, CLEAN),
            {"mse": MEASURED, "chosen": parts.text, "images": parts.several(parts.each([MEASURED] * 64), least=1)},
        ),
    },
    others=True,
)


@dataclass(frozen=True)
class DigitSizes:
    """Numbers of training, validation and test images, and the search grids."""

    n_train: int
    n_validation: int
    n_test: int
    #: σ² relative to half the median squared distance of the training images
    widths: tuple[float, ...]
    #: components of one-layer models; components per layer of two-layer models, and the share of layer 2 that is kept
    components: tuple[int, ...]
    layers: tuple[int, ...]
    fractions: tuple[float, ...]


#: equal selection effort: 3×6 = 18 candidates for one layer, 3×3×2 for two (medium and paper: 3×15 and 3×5×3)
SIZES = {
    "quick": DigitSizes(300, 100, 200, (0.5, 1.0, 3.0), (8, 14, 24, 40, 64, 100), (8, 16, 32), (0.5, 1.0)),
    "paper": DigitSizes(
        1000,
        297,
        500,
        (0.5, 1.0, 3.0),
        tuple(round(6 * (200 / 6) ** (i / 14)) for i in range(15)),
        (6, 12, 24, 48, 80),
        (0.3, 0.6, 1.0),
    ),
}
SIZES["medium"] = replace(SIZES["paper"], n_train=600, n_validation=200)


def _runs(sizes: DigitSizes) -> list[Configuration]:
    """Return one run for each kind of noise."""
    return [
        Configuration("digits", {"noise": kind, "level": level, "sizes": asdict(sizes)}, SEED)
        for kind, level in LEVELS.items()
    ]


def _tables(found: list[Row], sizes: DigitSizes) -> list[ResultTable]:
    lines = [
        {
            "noise": LABELS[result["noise"]],
            "method": entry["method"],
            "MSE per pixel": entry["mse"],
            "chosen": entry["chosen"],
            "estimated noise": result["estimated noise"],
        }
        for result in found
        for entry in result["methods"]
        if entry["method"] != CLEAN
    ]
    return [ResultTable("errors", "Mean squared error per pixel over the test images.", lines)]


def _claims(found: list[Row], sizes: DigitSizes) -> Iterator[Claim]:
    errors = {row["noise"]: {entry["method"]: entry["mse"] for entry in row["methods"]} for row in found}
    for kind, (rival, name) in product(LEVELS, (("scikit-learn's kernel PCA", RIVAL), ("one layer", ONE))):
        text = f"{LABELS[kind]}: two layers denoise better than {rival}"
        compared = None
        if kind in errors:
            ours, theirs, noisy = (errors[kind][method] for method in (TWO, name, NOISY))
            compared = ours, theirs, f"{ours:.4f} against {theirs:.4f} (noisy {noisy:.4f})"
        yield smaller_error(text, compared, "Mean squared error per pixel of test images.")


def draw(found: list[Row]) -> Any:
    """Return the grid of images: one block for each kind of noise, one row per method."""
    from drkm.plotting import style

    with style() as plt:
        lines = sum(len(result["methods"]) for result in found)
        figure = plt.figure(figsize=(7.2, 0.62 * lines + 0.6), layout="constrained")
        blocks = np.atleast_1d(figure.subfigures(len(found), 1))
        for block, result in zip(blocks, found, strict=True):
            block.suptitle(LABELS[result["noise"]].replace("σ_n", r"$\sigma_n$"))
            for axes, entry in zip(block.subplots(len(result["methods"]), 1), result["methods"], strict=True):
                _strip(axes, entry)
    return figure


def _strip(axes: Any, entry: Row) -> None:
    # An empty column separates each image from the next.
    images = np.array(entry["images"], dtype=float).reshape(-1, 8, 8)
    row = np.concatenate(list(np.pad(images, ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)), axis=1)
    axes.imshow(row, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    text = entry["method"] if entry["method"] == CLEAN else f"{entry['method']}\nMSE {entry['mse']:.4f}"
    axes.set_ylabel(text, rotation=0, ha="right", va="center")


EXPERIMENT = SimpleExperiment(
    name="digits",
    title="Digits: denoising images",
    place=5,
    tasks={"digits": Task(f"{__package__}._digits_run:run_digits", revision=4, result=RESULT)},
    text=lambda sizes: TEXT,
    scales=SIZES,
    settable=("n_train", "n_validation", "n_test", "widths", "components"),
    runs=_runs,
    tables=_tables,
    figures=lambda found, sizes: [Figure("digits", CAPTION, lambda: draw(found))],
    claims=_claims,
    settings={
        "training images": "n_train",
        "validation images": "n_validation",
        "test images": "n_test",
        "seed of the data": SEED,
    },
)
