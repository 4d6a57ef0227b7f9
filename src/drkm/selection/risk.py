"""The risk of a denoiser, estimated without clean points.

What to minimise is less obvious than it looks. The reconstruction error of held-out points (minus `score`) always
falls with more components and narrower kernels: a noisy point is best reconstructed by itself. What a denoiser f
should have is a small risk E‖f(y) - x‖², y = x + noise, and x is never seen. For Gaussian noise of standard
deviation σ it can still be estimated: of every held-out point make y ± √α·ω with ω ~ N(0, σ²I); then

    E‖f(y + √α ω) - x‖² = E‖f(y + √α ω) - y‖² + 2/√α · E⟨f(y + √α ω), ω⟩ - dσ²

is the risk at noise variance (1 + α)σ². The first term is the reconstruction error, the second its optimism: how much
f follows the noise it is given (Stein's identity; no derivative of f is taken, so that jumps between pre-images are
counted). The ω of a point all have the length √d·σ and, up to d of them, orthogonal directions: that changes the
right side by terms of order α and takes most of the chance out of it, in the plane with two of them all. σ is given
by the caller or estimated from the sample. Limits: the noise must be close to Gaussian and equal in all coordinates;
an error of 10 % in σ moves the choice a little, one of a factor of two spoils it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

#: α: the extra noise of the two copies relative to the noise there is
EXTRA_NOISE = 0.05


def perturbations(shape: tuple[int, int], noise: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return the ω of the module's text, an array of shape (draws, m, d) for m points in d dimensions."""
    m, d = shape
    blocks = [np.linalg.qr(rng.standard_normal((m, d, min(d, draws - first))))[0] for first in range(0, draws, d)]
    return noise * math.sqrt(d) * np.moveaxis(np.concatenate(blocks, axis=2), 2, 0)


def denoising_losses(
    denoise: Callable[[np.ndarray], np.ndarray], held: np.ndarray, omega: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each held-out point its part of the estimated risk, and its squared reconstruction error.

    Parameters
    ----------
    denoise : callable
        Any map of points to points.
    held : array of shape (m, d)
        Noisy points.
    omega : array of shape (draws, m, d)
        What `perturbations` returns.
    """
    step = math.sqrt(EXTRA_NOISE)
    copies = np.concatenate([held + step * omega, held - step * omega]).reshape(-1, held.shape[1])
    found = denoise(np.concatenate([held, copies]))
    here, moved = found[: len(held)], found[len(held) :].reshape(2, *omega.shape)
    reconstruction = ((moved - held) ** 2).sum(axis=-1).mean(axis=(0, 1))
    optimism = ((moved[0] - moved[1]) * omega).sum(axis=-1).mean(axis=0) / step
    # One constant for all candidates, so that their differences carry no extra noise.
    constant = float((omega**2).sum(axis=-1).mean())
    return reconstruction + optimism - constant, ((here - held) ** 2).sum(axis=-1)
