"""Gram operators: products of a Gram matrix with a block of vectors, and the strategies that form them."""

# Importing a module registers its strategy; lists of strategies follow the order of these lines.
# isort: off
from drkm.gram.dense import Dense as Dense
from drkm.gram.tiled import Tiled as Tiled
from drkm.gram.fused import Fused as Fused
from drkm.gram.nystroem import Nystroem as Nystroem
from drkm.gram.fourier import Fourier as Fourier
from drkm.gram.sharded import Sharded as Sharded

# isort: on
from drkm.gram.auto import Auto, check, fits, settle
from drkm.gram.base import NAMES, Centered, Gram, MovingGram, Strategy, Sums, register
from drkm.gram.cost import Cost, Workload
from drkm.gram.cross import Cross
from drkm.gram.dense import StoredGram
from drkm.gram.features import FeatureGram
from drkm.gram.fourier_gram import FourierGram
from drkm.gram.sweep import SweptGram
from drkm.gram.tiled_gram import TiledGram
from drkm.machine.memory import NotEnoughMemory

__all__ = [
    "Auto",
    "Centered",
    "Cost",
    "Cross",
    "FeatureGram",
    "FourierGram",
    "Gram",
    "MovingGram",
    "NotEnoughMemory",
    "StoredGram",
    "Strategy",
    "Sums",
    "SweptGram",
    "TiledGram",
    "Workload",
    "by_name",
    "check",
    "fits",
    "register",
    "settle",
    *(kind.__name__ for kind in NAMES.values()),
]


def by_name(name: str) -> Strategy:
    """Return the strategy of that name; "auto" chooses by the size of the problem."""
    if name == "auto":
        return Auto()
    if name not in NAMES:
        raise ValueError(f"gram: unknown name {name!r}, allowed are auto, {', '.join(NAMES)} or a drkm.gram object")
    return NAMES[name]()
