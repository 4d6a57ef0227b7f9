"""How a Gram matrix acts on a block of vectors."""

from drkm.gram.auto import Auto
from drkm.gram.auto import check as _check
from drkm.gram.auto import settle as _settle
from drkm.gram.base import Centered, Gram, MovingGram, Strategy, Sums
from drkm.gram.cost import Cost, Workload
from drkm.gram.cross import Cross
from drkm.gram.dense import Dense, ExponentGram, RememberedDistances, StoredGram
from drkm.gram.features import FeatureGram
from drkm.gram.fourier import Fourier
from drkm.gram.fused import Fused
from drkm.gram.nystroem import Nystroem
from drkm.gram.sharded import Sharded
from drkm.gram.sweep import SweptGram
from drkm.gram.tiled import Tiled, TiledGram
from drkm.gram.waves import FourierGram
from drkm.machine.memory import NotEnoughMemory

__all__ = [
    "Auto",
    "Centered",
    "Cost",
    "Cross",
    "Dense",
    "ExponentGram",
    "FeatureGram",
    "Fourier",
    "FourierGram",
    "Fused",
    "Gram",
    "MovingGram",
    "NotEnoughMemory",
    "Nystroem",
    "RememberedDistances",
    "Sharded",
    "StoredGram",
    "Strategy",
    "Sums",
    "SweptGram",
    "Tiled",
    "TiledGram",
    "Workload",
    "by_name",
    "check",
    "settle",
]

NAMES: dict[str, type[Strategy]] = {
    "dense": Dense,
    "tiled": Tiled,
    "fused": Fused,
    "nystroem": Nystroem,
    "fourier": Fourier,
    "sharded": Sharded,
}


def by_name(name: str) -> Strategy:
    """Return the strategy of that name; "auto" chooses by the size of the problem."""
    if name == "auto":
        return Auto()
    if name not in NAMES:
        raise ValueError(f"gram: unknown name {name!r}, allowed are auto, {', '.join(NAMES)} or a drkm.gram object")
    return NAMES[name]()


def settle(strategy: Strategy, work: Workload) -> tuple[Strategy, Cost]:
    """Return the strategy that will be used and its cost, after making sure that it fits into memory."""
    return _settle(strategy, work, [make() for make in NAMES.values()])


def check(strategy: Strategy, work: Workload) -> tuple[Strategy, Cost]:
    """Return the same without a line in the log, for a look ahead."""
    return _check(strategy, work, [make() for make in NAMES.values()])
