"""A demo on bundled data: scikit-learn's handwritten digits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drkm.demos._shared import draw_rows, fitted, write_explorer
from drkm.estimator import ConstrDRKM
from drkm.explorer import Subject
from drkm.inputs.preparation import Preparation
from drkm.plotting import COLOURS, MARKERS, style
from drkm.wording import for_terminal


def run(out: Path, n: int = 400) -> None:
    """Fit a two-layer model to n digits, encode and denoise unseen ones, draw a figure and save the model."""
    from sklearn.datasets import load_digits

    from drkm import load

    out.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.data))
    X, labels = digits.data[order] / 16, digits.target[order]
    train, new = X[:n], X[n : n + 200]
    print(f"{n} handwritten digits of 8×8 pixels, two layers of 10 and 5 components")
    model = fitted(train)
    print(f"\n{for_terminal(model.summary())}\n")

    start = time.perf_counter()
    codes = model.encode(new)
    print(
        f"encoded {len(new)} unseen digits in {time.perf_counter() - start:.2f} s: "
        f"largest residual {np.max(codes.residual):.0e}, {np.mean(np.asarray(codes.ambiguous)):.0%} ambiguous"
    )
    noisy = new + 0.25 * np.random.RandomState(1).randn(*new.shape)
    clean = model.denoise(noisy)
    print(
        f"denoised them from noise of 0.25: mean squared error {np.mean((noisy - new) ** 2):.4f} "
        f"before, {np.mean((clean - new) ** 2):.4f} after"
    )
    shown = Preparation(shape=(8, 8), white=1.0)
    model.save(out / "digits.safetensors", preparation=shown)
    same = np.array_equal(load(out / "digits.safetensors").transform(new), model.transform(new))
    print(f"saved to {out / 'digits.safetensors'}; the loaded model gives {'the same' if same else 'OTHER'} codes")
    path = draw(model, labels[:n], (noisy[:8], clean[:8], new[:8]), out / "digits.png")
    print(f"figure in {path}")
    subject = Subject(model, preparation=shown, title=f"{n} digits", labels={"digit": labels[:n].tolist()})
    write_explorer(subject, out / "digits")


def draw(model: ConstrDRKM, labels: np.ndarray, images: Sequence[np.ndarray], path: Path) -> Path:
    """Draw the first codes of both layers, the effect of the first components, and the denoised digits."""
    with style() as plt:
        plt.switch_backend("Agg")
        figure: Any = plt.figure(figsize=(11, 6.5), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(1.5, 1))
        for axis, layer in zip(top.subplots(1, 2), (1, 2), strict=True):
            _scatter(axis, model, labels, layer)
        top.axes[1].legend(title="digit", ncols=2, loc="best", handletextpad=0.2)
        left, right = bottom.subfigures(1, 2, width_ratios=(2, 3))
        mean, spread = model.codes_.mean(axis=0), model.codes_.std(axis=0)
        grid = [model.traverse(1, i, mean[i] + np.linspace(-2, 2, 7) * spread[i]) for i in range(4)]
        title = "A typical digit, one code of layer 1 at −2 … 2 deviations"
        # Ink is dark.
        draw_rows(left, [1 - row for row in grid], [f"code {i}" for i in range(4)], title)
        draw_rows(right, [1 - row for row in images], ["noisy", "denoised", "true"], "Unseen digits with noise 0.25")
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


def _scatter(axis: Any, model: ConstrDRKM, labels: np.ndarray, layer: int) -> None:
    block = model.layer_slices_[layer - 1]
    # Code 0 of a layer is close to constant; the two after it tell samples apart.
    pair = model.codes_[:, block][:, 1:3] * np.sqrt(len(labels))
    for digit in range(10):
        colour, marker = COLOURS[digit % len(COLOURS)], MARKERS[digit // len(COLOURS)]
        axis.scatter(*pair[labels == digit].T, s=16, color=colour, marker=marker, label=str(digit), linewidths=0)
    axis.set_title(f"Layer {layer}: codes 1 and 2 of the training digits", fontsize=10)
    axis.set_xlabel("√n · code 1")
    axis.set_ylabel("√n · code 2")
