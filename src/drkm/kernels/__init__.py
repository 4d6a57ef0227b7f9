"""Kernels: what k(x, y) is. How their Gram matrices are formed is decided in `drkm.gram`."""

from drkm.kernels.approximation import Approximation
from drkm.kernels.base import DotProduct, Explicit, Isotropic, Kernel, Pairwise
from drkm.kernels.feature_map import FeatureMap
from drkm.kernels.fourier import FourierFeatures
from drkm.kernels.laplacian import Laplacian
from drkm.kernels.linear import Cosine, Linear
from drkm.kernels.matern import Matern
from drkm.kernels.nystroem import NystroemFeatures
from drkm.kernels.polynomial import Polynomial
from drkm.kernels.precomputed import Precomputed
from drkm.kernels.rbf import RBF

__all__ = [
    "RBF",
    "Approximation",
    "Cosine",
    "DotProduct",
    "Explicit",
    "FeatureMap",
    "FourierFeatures",
    "Isotropic",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "NystroemFeatures",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "by_name",
]

NAMES: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "matern": Matern,
    "linear": Linear,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "precomputed": Precomputed,
}


def by_name(name: str) -> Kernel:
    """Return the kernel of that name with its default parameters."""
    if name not in NAMES:
        raise ValueError(f"kernel: unknown name {name!r}, allowed are {', '.join(NAMES)} or a drkm.kernels object")
    return NAMES[name]()
