"""Handwritten digits with Gaussian and with salt-and-pepper noise: noisy, kernel PCA, ours, clean."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from drkm.experiments.denoising._digits_run import CLEAN, NOISY, ONE, RIVAL, SIZES, TWO
from drkm.experiments.denoising._one_draw import RULE, missing, smaller
from drkm.experiments.denoising._problems import SEED
from drkm.experiments.section import Claim, Figure, Section, Table
from drkm.runs.configuration import Configuration, Results

TITLE = "Digits: denoising images"
TEXT = """\
scikit-learn's handwritten digits with Gaussian noise and with salt and pepper; the paper has no such experiment.
Models are trained on noisy images alone and denoise others. Bandwidths and components have the least estimated risk on
held-out noisy images, with as many candidates for one layer as for two. That estimate presumes Gaussian noise, so salt
and pepper is a test of it as well."""
CAPTION = """\
Test images, one block a kind of noise, one line a method; the mean squared error per pixel is
over all test images."""
#: kind of noise → its level: a standard deviation, a part of the pixels
LEVELS = {"gaussian": 0.3, "salt and pepper": 0.2}
LABELS = {"gaussian": "Gaussian, σ_n = 0.3", "salt and pepper": "salt and pepper, 20 % of the pixels"}

Row = dict[str, Any]


def configurations(scale: str) -> list[Configuration]:
    """Return one run a kind of noise."""
    sizes = asdict(SIZES[scale])
    return [
        Configuration("digits", {"noise": kind, "level": level, "sizes": sizes}, SEED) for kind, level in LEVELS.items()
    ]


def section(results: Results, scale: str) -> Section:
    """Return what the finished runs show."""
    found = list(results.rows(configurations(scale)))
    sizes = SIZES[scale]
    return Section(
        name="digits",
        title=TITLE,
        text=TEXT,
        tables=[Table("errors", "Mean squared error per pixel over the test images.", _rows(found))] if found else [],
        figures=[Figure("digits", CAPTION, lambda: draw(found))] if found else [],
        claims=[claim for kind in LEVELS for claim in _claims(kind, found)],
        settings={
            "training images": sizes.n_train,
            "validation images": sizes.n_validation,
            "test images": sizes.n_test,
            "seed of the data": SEED,
        },
    )


def _rows(found: list[Row]) -> list[Row]:
    return [
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


def _claims(kind: str, found: list[Row]) -> list[Claim]:
    errors = next(({e["method"]: e["mse"] for e in row["methods"]} for row in found if row["noise"] == kind), None)
    return [
        _smaller(f"{LABELS[kind]}: two layers denoise better than {rival}", errors, name)
        for rival, name in (("scikit-learn's kernel PCA", RIVAL), ("one layer", ONE))
    ]


def _smaller(text: str, errors: dict[str, float] | None, rival: str) -> Claim:
    if errors is None:
        return missing(text)
    measured = f"{errors[TWO]:.4f} against {errors[rival]:.4f} (noisy {errors[NOISY]:.4f})"
    verdict = smaller(errors[TWO], errors[rival])
    return Claim(text, "", measured, verdict, f"Mean squared error per pixel of test images. {RULE}")


def draw(found: list[Row]) -> Any:
    """Return the grid of images: one block a kind of noise, one line a method."""
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
    # A column of nothing after each image, so that the noise of one does not run into the next.
    images = [np.pad(np.reshape(image, (8, 8)), ((0, 0), (0, 1)), constant_values=np.nan) for image in entry["images"]]
    row = np.concatenate(images, axis=1)
    axes.imshow(row, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    text = entry["method"] if entry["method"] == CLEAN else f"{entry['method']}\nMSE {entry['mse']:.4f}"
    axes.set_ylabel(text, rotation=0, ha="right", va="center")
