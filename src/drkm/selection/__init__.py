"""Choosing a model on held-out points, without labels and without clean data."""

from drkm.selection.noise import estimate_noise
from drkm.selection.risk import denoising_losses, perturbations
from drkm.selection.selection import PREIMAGE_TOL, Selection, select

__all__ = ["PREIMAGE_TOL", "Selection", "denoising_losses", "estimate_noise", "perturbations", "select"]
