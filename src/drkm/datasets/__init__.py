"""Datasets: noisy plane curves, and images with known generative factors."""

from drkm.datasets._factors import FactorDataset
from drkm.datasets._files import DatasetError
from drkm.datasets.dsprites import load_dsprites
from drkm.datasets.noisy_dsprites import load_noisy_dsprites
from drkm.datasets.toy2d import make_half_circle, make_square, make_square_spiral, make_squares_spiral_ring

__all__ = [
    "DatasetError",
    "FactorDataset",
    "load_dsprites",
    "load_noisy_dsprites",
    "make_half_circle",
    "make_square",
    "make_square_spiral",
    "make_squares_spiral_ring",
]
