"""How a Gram matrix acts on a block of vectors."""

from drkm.gram.base import Centered, Gram, MovingGram, Strategy, Sums
from drkm.gram.dense import Dense, ExponentGram, RememberedDistances, StoredGram
from drkm.gram.features import FeatureGram
from drkm.gram.fourier import Fourier
from drkm.gram.nystroem import Nystroem
from drkm.gram.sharded import Sharded
from drkm.gram.sweep import SweptGram
from drkm.gram.waves import FourierGram

__all__ = [
    "Centered",
    "Dense",
    "ExponentGram",
    "FeatureGram",
    "Fourier",
    "FourierGram",
    "Gram",
    "MovingGram",
    "Nystroem",
    "RememberedDistances",
    "Sharded",
    "StoredGram",
    "Strategy",
    "Sums",
    "SweptGram",
    "by_name",
]

NAMES: dict[str, type[Strategy]] = {"dense": Dense, "nystroem": Nystroem, "fourier": Fourier, "sharded": Sharded}


def by_name(name: str) -> Strategy:
    """Return the strategy of that name; "auto" is `Dense`."""
    if name == "auto":
        return Dense()
    if name not in NAMES:
        raise ValueError(f"gram: unknown name {name!r}, allowed are auto, {', '.join(NAMES)} or a drkm.gram object")
    return NAMES[name]()
