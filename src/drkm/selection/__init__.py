"""Model selection without labels and without clean data."""

from drkm.inference.eigencomponents import PREIMAGE_TOL
from drkm.selection.cleaning import denoise
from drkm.selection.noise import estimate_noise, noise_of_region, noise_of_repeats
from drkm.selection.result import Expected, Selection
from drkm.selection.risk import denoising_losses, perturbations
from drkm.selection.selection import select

__all__ = [
    "PREIMAGE_TOL",
    "Expected",
    "Selection",
    "denoise",
    "denoising_losses",
    "estimate_noise",
    "noise_of_region",
    "noise_of_repeats",
    "perturbations",
    "select",
]
