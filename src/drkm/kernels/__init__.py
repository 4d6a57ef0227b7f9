"""Kernel functions k(x, y). How their Gram matrices are formed is decided in `drkm.gram`."""

# Importing a module registers its kernel; lists of kernels follow the order of these lines.
# isort: off
from drkm.kernels.rbf import RBF as RBF
from drkm.kernels.laplacian import Laplacian as Laplacian
from drkm.kernels.matern import Matern as Matern
from drkm.kernels.linear import Linear as Linear
from drkm.kernels.polynomial import Polynomial as Polynomial
from drkm.kernels.cosine import Cosine as Cosine
from drkm.kernels.precomputed import Precomputed as Precomputed
from drkm.kernels.feature_map import FeatureMap as FeatureMap
from drkm.kernels.fourier import FourierFeatures as FourierFeatures
from drkm.kernels.nystroem import NystroemFeatures as NystroemFeatures

# isort: on
from drkm.kernels.approximation import Approximation
from drkm.kernels.base import KINDS, NAMES, DotProduct, Explicit, Isotropic, Kernel, Pairwise, Profile, register

__all__ = [
    "Approximation",
    "DotProduct",
    "Explicit",
    "Isotropic",
    "Kernel",
    "Pairwise",
    "Profile",
    "by_name",
    "register",
    *KINDS,
]


def by_name(name: str) -> Kernel:
    """Return the kernel of that name with its default parameters."""
    if name not in NAMES:
        raise ValueError(f"kernel: unknown name {name!r}, allowed are {', '.join(NAMES)} or a drkm.kernels object")
    return NAMES[name]()
