"""Datasets: noisy plane curves, and images with known generative factors."""

# Importing a module registers its dataset; lists of datasets follow the order of these lines.
# isort: off
from drkm.datasets.dsprites import load_dsprites as load_dsprites
from drkm.datasets.noisy_dsprites import load_noisy_dsprites as load_noisy_dsprites
from drkm.datasets.cars3d import load_cars3d as load_cars3d
from drkm.datasets.smallnorb import load_smallnorb as load_smallnorb

# isort: on
from drkm.datasets._catalogue import FileCheck, download, list_datasets, verify
from drkm.datasets._dataset import DATASETS, DatasetInfo, Source, dataset, source_of
from drkm.datasets._factors import FactorDataset
from drkm.datasets._files import DatasetError
from drkm.datasets.downloads import RemoteFile, data_dir
from drkm.datasets.toy2d import make_half_circle, make_square, make_square_spiral, make_squares_spiral_ring

__all__ = [
    "DatasetError",
    "DatasetInfo",
    "FactorDataset",
    "FileCheck",
    "RemoteFile",
    "Source",
    "data_dir",
    "dataset",
    "download",
    "list_datasets",
    "make_half_circle",
    "make_square",
    "make_square_spiral",
    "make_squares_spiral_ring",
    "source_of",
    "verify",
    *(info.load.__name__ for info in DATASETS.values()),
]
