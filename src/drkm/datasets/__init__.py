"""Datasets: noisy plane curves, and images with known generative factors."""

from drkm.datasets._catalogue import DatasetInfo, FileCheck, download, list_datasets, verify
from drkm.datasets._factors import FactorDataset
from drkm.datasets._files import DatasetError
from drkm.datasets.cars3d import load_cars3d
from drkm.datasets.downloads import data_dir
from drkm.datasets.dsprites import load_dsprites
from drkm.datasets.noisy_dsprites import load_noisy_dsprites
from drkm.datasets.smallnorb import load_smallnorb
from drkm.datasets.toy2d import make_half_circle, make_square, make_square_spiral, make_squares_spiral_ring

__all__ = [
    "DatasetError",
    "DatasetInfo",
    "FactorDataset",
    "FileCheck",
    "data_dir",
    "download",
    "list_datasets",
    "load_cars3d",
    "load_dsprites",
    "load_noisy_dsprites",
    "load_smallnorb",
    "make_half_circle",
    "make_square",
    "make_square_spiral",
    "make_squares_spiral_ring",
    "verify",
]
