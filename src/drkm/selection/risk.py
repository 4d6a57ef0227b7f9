"""The risk of a denoiser, estimated without clean points by Stein's identity.

The reconstruction error of held-out points (minus `score`) is no guide: it always decreases with more components and
narrower kernels, because a noisy point is best reconstructed by itself. A denoiser f should have a small risk E‖f(y) -
x‖², y = x + noise, but x is never seen. For Gaussian noise of standard deviation σ it can still be estimated: from
every held-out point make y ± √α·ω with ω ~ N(0, σ²I); then

    E‖f(y + √α ω) - x‖² = E‖f(y + √α ω) - y‖² + 2/√α · E⟨f(y + √α ω), ω⟩ - dσ²

is the risk at noise variance (1 + α)σ². The first term is the reconstruction error, the second its optimism: how much f
follows the noise it is given (Stein's identity; f is not differentiated, so that jumps between pre-images are
included). The ω of a point all have the length √d·σ and, up to d of them, orthogonal directions: this changes the right
side by terms of order α and removes most of its randomness, all of it with two of them in the plane. σ is given by the
caller or estimated from the sample. Limits: the noise must be close to Gaussian and equal in all coordinates; an error
of 10 % in σ changes the choice a little, a factor of two ruins it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

#: α: the variance of the noise that is added to the two copies, relative to that of the noise in the samples
EXTRA_NOISE = 0.05


def perturbations(shape: tuple[int, int], noise: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return ω of the module docstring, an array of shape (draws, m, d) for m points in d dimensions."""
    m, d = shape
    blocks = [np.linalg.qr(rng.standard_normal((m, d, min(d, draws - first))))[0] for first in range(0, draws, d)]
    return noise * math.sqrt(d) * np.moveaxis(np.concatenate(blocks, axis=2), 2, 0)


def denoising_losses(
    denoise: Callable[[np.ndarray], np.ndarray], held: np.ndarray, omega: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each held-out point's contribution to the estimated risk, and its squared reconstruction error.

    Parameters
    ----------
    denoise : callable
        Any map from points to points.
    held : array of shape (m, d)
        Noisy points.
    omega : array of shape (draws, m, d)
        Result of `perturbations`.
    """
    step = math.sqrt(EXTRA_NOISE)
    copies = np.concatenate([held + step * omega, held - step * omega]).reshape(-1, held.shape[1])
    found = denoise(np.concatenate([held, copies]))
    here, moved = found[: len(held)], found[len(held) :].reshape(2, *omega.shape)
    reconstruction = ((moved - held) ** 2).sum(axis=-1).mean(axis=(0, 1))
    optimism = ((moved[0] - moved[1]) * omega).sum(axis=-1).mean(axis=0) / step
    # The same constant for all candidates, so that their differences contain no extra noise.
    constant = float((omega**2).sum(axis=-1).mean())
    return reconstruction + optimism - constant, ((here - held) ** 2).sum(axis=-1)
