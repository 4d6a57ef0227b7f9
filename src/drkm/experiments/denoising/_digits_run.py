"""The runs on handwritten digits: images with one kind of noise, denoised by every method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drkm.experiments.denoising import _methods as methods
from drkm.experiments.denoising._problems import mean_squared_error, rounded
from drkm.experiments.denoising.digits import CLEAN, NOISY, ONE, RIVAL, TWO, DigitSizes
from drkm.machine.threads import one_thread
from drkm.selection import select
from drkm.selection.noise import estimate_noise

Array = np.ndarray


#: width of the second kernel relative to its "scale"
DEEP_WIDTH = 0.2
#: images per method that are kept for the figure; errors are over all images
DRAWN = 10


def run_digits(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train on noisy images only, denoise others, and return the errors and some of the images.

    Parameters
    ----------
    parameters : mapping
        `noise` ("gaussian" or "salt and pepper"), its `level`, and `sizes`, the fields of `DigitSizes`.
    seed : int
        Determines the order of the images and the noise.
    """
    sizes = DigitSizes(**parameters["sizes"])
    clean = load_images(seed)
    noisy = corrupt(clean, parameters["level"], gaussian=parameters["noise"] == "gaussian", seed=seed)
    ends = np.cumsum([sizes.n_train, sizes.n_validation, sizes.n_test])
    train, validation, test = np.split(noisy[: ends[-1]], ends[:-1])
    truth = clean[ends[1] : ends[2]]
    with one_thread():
        noise = estimate_noise(np.concatenate([train, validation]))
        rows = [_row(NOISY, test, truth)]
        for method in (RIVAL, ONE, TWO):
            denoise, chosen = choose(method, train, validation, noise, sizes)
            rows.append(_row(method, denoise(test), truth, chosen))
    return {"estimated noise": rounded(noise), "methods": [*rows, _row(CLEAN, truth, truth)]}


def _row(method: str, images: Array, truth: Array, chosen: str = "") -> dict[str, Any]:
    error = mean_squared_error(images, truth) / images.shape[1]
    return {
        "method": method,
        "mse": rounded(error),
        "chosen": chosen,
        "images": np.round(images[:DRAWN], 2).tolist(),
    }


def load_images(seed: int) -> Array:
    """Return scikit-learn's 1797 digits as rows of 64 pixels in [0, 1], shuffled."""
    from sklearn.datasets import load_digits

    images = load_digits().data / 16.0
    return images[np.random.default_rng([seed, 0]).permutation(len(images))]


def corrupt(images: Array, level: float, *, gaussian: bool, seed: int) -> Array:
    """Return the images with Gaussian noise of this standard deviation, or with this share of pixels set to 0 or 1."""
    rng = np.random.default_rng([seed, 1])
    if gaussian:
        return images + level * rng.standard_normal(images.shape)
    hit = rng.random(images.shape) < level
    return np.where(hit, (rng.random(images.shape) < 0.5).astype(float), images)


def choose(
    method: str, train: Array, validation: Array, noise: float, sizes: DigitSizes
) -> tuple[methods.Denoiser, str]:
    """Return the denoiser of a method with the least estimated risk, and its settings in words."""
    from scipy.spatial.distance import pdist

    half_median = 0.5 * float(np.median(pdist(train, "sqeuclidean")))
    widths = [f * half_median for f in sizes.widths]
    if method == RIVAL:
        denoisers = {entry: methods.rival(entry, train) for entry in methods.rival_settings(widths, sizes.components)}
        best, chosen = methods.least_risk(validation, noise, denoisers, draws=1)
        return best, methods.rival_choice(chosen)
    if method == ONE:
        grid, base = methods.one_layer_grid(widths, sizes.components), methods.base_model(1)
    else:
        grid, base = _deep_grid(widths, sizes, len(train)), methods.base_model(2)
    found = select(train, grid, estimator=base, validation=validation, noise=noise, draws=1)
    return found.denoise, methods.choice(found)


def _deep_grid(widths: list[float], sizes: DigitSizes, n: int) -> methods.Grid:
    """Return two-layer models that denoise with the components of both layers."""
    return [
        {
            **methods.deep_fits(widths, (s, s), n, DEEP_WIDTH),
            "keep": [(s, max(1, round(q * s))) for q in sizes.fractions],
        }
        for s in sizes.layers
    ]
