"""Handwritten digits with Gaussian and with salt-and-pepper noise: noisy, kernel PCA, ours, clean."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from tqdm import tqdm

from drkm._noise import estimate_noise
from drkm.estimator import ConstrDRKM
from drkm.experiments import check_scale
from drkm.experiments._denoising import DEEP_WIDTH, deep_base, mean_squared_error, one_thread
from drkm.experiments._output import save_figure, save_table
from drkm.selection import denoising_losses, select

Array = np.ndarray


@dataclass(frozen=True)
class Sizes:
    """Training, validation and test images, and what is searched."""

    n_train: int
    n_validation: int
    n_test: int
    #: σ² relative to half the median squared distance of the training images
    widths: tuple[float, ...]
    keep: tuple[int, ...]
    layers: tuple[int, ...]
    fractions: tuple[float, ...]


#: equal selection effort: 3×6 = 18 candidates for one layer, 3×3×2 for two (paper: 3×15 and 3×5×3)
SIZES = {
    "quick": Sizes(300, 100, 200, (0.5, 1.0, 3.0), (8, 14, 24, 40, 64, 100), (8, 16, 32), (0.5, 1.0)),
    "paper": Sizes(
        1000,
        297,
        500,
        (0.5, 1.0, 3.0),
        tuple(round(6 * (200 / 6) ** (i / 14)) for i in range(15)),
        (6, 12, 24, 48, 80),
        (0.3, 0.6, 1.0),
    ),
}
LEVELS = {"Gaussian, σ_n = 0.3": 0.3, "salt and pepper, 20 % of the pixels": 0.2}
METHODS = ("scikit-learn KernelPCA", "one layer", "two layers")


def run(
    scale: str = "quick",
    out: str | Path = "results",
    *,
    seed: int = 2,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> list[Path]:
    """Train on noisy images alone, denoise others, and write the grid of images and the errors.

    Parameters as in `table1.run`.
    """
    sizes = SIZES[check_scale(scale)]
    clean = load_images(seed)
    rows: list[dict[str, Any]] = []
    pictures: list[tuple[str, list[tuple[str, Array]]]] = []
    with one_thread(), tqdm(total=len(LEVELS) * len(METHODS), desc=f"digits ({scale})", disable=not verbose) as bar:
        for kind, level in LEVELS.items():
            noisy = corrupt(clean, level, gaussian=kind.startswith("Gaussian"), seed=seed)
            parts = np.split(noisy, np.cumsum([sizes.n_train, sizes.n_validation, sizes.n_test]))
            train, validation, test = parts[:3]
            begin = sizes.n_train + sizes.n_validation
            truth = clean[begin : begin + sizes.n_test]
            noise = estimate_noise(np.concatenate([train, validation]))
            strip = [("noisy", test)]
            rows.append(_row(kind, "noisy images", test, truth, "", noise, 0.0))
            for method in METHODS:
                clock = time.perf_counter()
                denoise, chosen = choose(method, train, validation, noise, sizes, n_jobs)
                found = denoise(test)
                rows.append(_row(kind, method, found, truth, chosen, noise, time.perf_counter() - clock))
                strip.append((method, found))
                bar.update()
            pictures.append((kind, [*strip, ("clean", truth)]))
    folder = Path(out) / "digits"
    title = f"Digits, {sizes.n_train} noisy training images, seed {seed}"
    return [
        *save_figure(draw(pictures), folder, f"digits-{scale}"),
        *save_table(rows, folder, f"digits-{scale}", title),
    ]


def load_images(seed: int) -> Array:
    """Return scikit-learn's 1797 digits as rows of 64 pixels in [0, 1], shuffled."""
    from sklearn.datasets import load_digits

    images = load_digits().data / 16.0
    return images[np.random.default_rng([seed, 0]).permutation(len(images))]


def corrupt(images: Array, level: float, *, gaussian: bool, seed: int) -> Array:
    """Return the images with Gaussian noise of that standard deviation, or with that part of the pixels 0 or 1."""
    rng = np.random.default_rng([seed, 1])
    if gaussian:
        return images + level * rng.standard_normal(images.shape)
    hit = rng.random(images.shape) < level
    return np.where(hit, (rng.random(images.shape) < 0.5).astype(float), images)


def choose(
    method: str, train: Array, validation: Array, noise: float, sizes: Sizes, n_jobs: int | None
) -> tuple[Callable[[Array], Array], str]:
    """Return the denoiser of a method with the settings of least estimated risk, and these settings."""
    from scipy.spatial.distance import pdist

    half_median = 0.5 * float(np.median(pdist(train, "sqeuclidean")))
    widths = [f * half_median for f in sizes.widths]
    if method == "scikit-learn KernelPCA":
        return _choose_rival(train, validation, noise, widths, sizes)
    if method == "one layer":
        grid: Any = {"n_components": [max(sizes.keep)], "sigma2": widths, "keep": list(sizes.keep)}
        base = ConstrDRKM(tol=1e-5, encoder="projection")
    else:
        grid = [
            {
                "n_components": [(s, s)],
                "sigma2": [(w, DEEP_WIDTH * 2 * s / len(train)) for w in widths],
                "keep": [(s, max(1, round(q * s))) for q in sizes.fractions],
            }
            for s in sizes.layers
        ]
        base = deep_base()
    found = select(train, grid, estimator=base, validation=validation, noise=noise, draws=1, n_jobs=n_jobs)
    best = found.best_params
    first = best["sigma2"] if isinstance(best["sigma2"], float) else best["sigma2"][0]
    return found.denoise, f"σ²={first:.3g}, components {best['keep']}"


def _choose_rival(
    train: Array, validation: Array, noise: float, widths: list[float], sizes: Sizes
) -> tuple[Callable[[Array], Array], str]:
    omega = noise * np.random.default_rng(0).standard_normal((1, *validation.shape))
    best: tuple[float, Callable[[Array], Array], str] | None = None
    for width in widths:
        for count in sizes.keep:
            for alpha in (0.01, 1.0):
                model = KernelPCA(count, kernel="rbf", gamma=0.5 / width, fit_inverse_transform=True, alpha=alpha)
                model.fit(train)

                def denoise(images: Array, model: KernelPCA = model) -> Array:
                    return model.inverse_transform(model.transform(images))

                risk = float(denoising_losses(denoise, validation, omega)[0].mean())
                if best is None or risk < best[0]:
                    best = (risk, denoise, f"σ²={width:.3g}, {count} components, α={alpha:g}")
    assert best is not None
    return best[1:]


def _row(
    kind: str, method: str, images: Array, truth: Array, chosen: str, noise: float, seconds: float
) -> dict[str, Any]:
    return {
        "noise": kind,
        "method": method,
        "MSE per pixel": mean_squared_error(images, truth) / images.shape[1],
        "chosen": chosen,
        "estimated noise": noise,
        "seconds": round(seconds, 1),
    }


def draw(pictures: list[tuple[str, list[tuple[str, Array]]]], columns: int = 10) -> Any:
    """Return the grid of images: one block a kind of noise, one line a method."""
    from drkm.plotting import style

    with style() as plt:
        lines = sum(len(strip) for _, strip in pictures)
        figure = plt.figure(figsize=(7.2, 0.62 * lines + 0.6), layout="constrained")
        for block, (kind, strip) in zip(figure.subfigures(len(pictures), 1), pictures, strict=True):
            block.suptitle(kind)
            truth = strip[-1][1]
            axes = block.subplots(len(strip), 1)
            for place, (name, images) in zip(axes, strip, strict=True):
                row = np.concatenate([image.reshape(8, 8) for image in images[:columns]], axis=1)
                place.imshow(row, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
                place.set_xticks([])
                place.set_yticks([])
                for side in place.spines.values():
                    side.set_visible(False)
                error = mean_squared_error(images, truth) / truth.shape[1]
                text = name if images is truth else f"{name}\nMSE {error:.4f}"
                place.set_ylabel(text, rotation=0, ha="right", va="center")
    return figure
