"""Square tiles of kernel values: how they are formed, which of them stay in memory, and products with both sides.

A tile of two blocks of points is used for the rows of one and, transposed, for the rows of the other, so that only half
of a symmetric matrix is computed and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock

import torch
from torch import Tensor

from drkm.arrays.forms import into_values
from drkm.kernels import Pairwise
from drkm.machine import pages
from drkm.machine.devices import size_on
from drkm.machine.layout import ALIGNMENT, slices
from drkm.machine.threads import ShareOut

#: rows of a tile; with 4096 features, its products then take most of the time, not the reading of samples
TILE_ROWS = {"cpu": 1024, "cuda": 8192}
#: rows of a tile that one thread of a CPU computes at a time, at most, and in how many parts it is formed, at least
PART_ROWS, FORMING_PARTS = 256, 4
#: parts of a product that are summed on their own, so that threads need not wait for each other, and how many numbers
#: all their sums have at most
MOST_LANES, LANE_NUMBERS = 8, 1 << 22


class KeptTiles:
    """Tiles by their place in a matrix, of which as many stay in memory as a budget allows.

    Kept tiles share one allocation: between the short-lived blocks of their computation they would leave holes, and the
    process would grow far beyond the memory that it uses.

    Parameters
    ----------
    budget : float
        Bytes of tiles that stay in memory.
    entries : int
        Entries of all tiles that there are, each at an aligned address.
    """

    def __init__(self, budget: float, entries: int):
        self._budget, self._entries = budget, entries
        self._tiles: dict[Hashable, Tensor] = {}
        self._used = 0
        self._pool: Tensor | None = None
        # Tiles that are not kept share one buffer: freed blocks of this size are not always reused.
        self._buffer: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the kept tiles."""
        return sum(tile.nbytes for tile in self._tiles.values())

    def at(self, place: Hashable, shape: tuple[int, int], like: Tensor, form: Callable[[Tensor], None]) -> Tensor:
        """Return the tile at a place; unless it is kept, `form` writes it, and the next call may overwrite it."""
        tile = self._tiles.get(place)
        if tile is not None:
            return tile
        entries = shape[0] * shape[1]
        if self._pool is None:
            self._pool = pages.empty_like(int(min(self._budget / like.element_size(), self._entries)), like)
        if len(self._pool) - self._used < entries:
            tile = self._in_buffer(entries, like).view(shape)
            form(tile)
            return tile
        tile = self._pool[self._used : self._used + entries].view(shape)
        form(tile)
        self._tiles[place] = tile
        self._used += aligned_entries(*shape, like.element_size())
        return tile

    def __contains__(self, place: Hashable) -> bool:
        return place in self._tiles

    def emptied(self) -> KeptTiles:
        """Return the memory without its tiles, which this object gives up."""
        other = KeptTiles(self._budget, self._entries)
        other._pool, other._buffer = self._pool, self._buffer
        self._free()
        return other

    def keep_at_most(self, budget: float) -> None:
        """Free the tiles if they take more than so many bytes, and keep no more from now on."""
        self._budget = min(self._budget, budget)
        self._buffer = None
        if self._pool is not None and self._pool.nbytes > self._budget:
            self._free()

    def __getstate__(self) -> dict[str, object]:
        # A copy computes its tiles again; as views of one block, each would be pickled with the whole block.
        return vars(KeptTiles(self._budget, self._entries))

    def _free(self) -> None:
        self._tiles, self._used, self._pool, self._buffer = {}, 0, None, None

    def _in_buffer(self, entries: int, like: Tensor) -> Tensor:
        if self._buffer is None or len(self._buffer) < entries:
            self._buffer = like.new_empty(entries)
        return self._buffer[:entries]


class Strip:
    """Some rows of a block and of the product with it, each as columns of a wide matrix.

    A few rows times a tile: as columns to the right of it they would take a BLAS up to three times as long.

    Parameters
    ----------
    block : Tensor of shape (t, n)
        The block, transposed.
    product : Tensor of shape (t, n), optional
        The product so far; zero by default.
    """

    def __init__(self, block: Tensor, product: Tensor | None = None):
        self.block = block
        self.product = torch.zeros_like(block) if product is None else product

    def __getitem__(self, rows: slice) -> Strip:
        return Strip(self.block[:, rows], self.product[:, rows])


class OrderedSum:
    """A sum of terms that several threads compute, added in the order of their numbers, whichever is ready first.

    Its bits do not depend on the threads. A term is gone as soon as it and all before it are added.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Tensor] = {}
        self._added = 0
        self._lock = Lock()
        self.value: Tensor

    def add(self, number: int, term: Tensor) -> None:
        """Add a term, which may be overwritten; numbers begin with 0."""
        with self._lock:
            self._waiting[number] = term
            while self._added in self._waiting:
                term = self._waiting.pop(self._added)
                self.value = self.value.add_(term) if self._added else term
                self._added += 1


def aligned_entries(rows: int, columns: int, item: int) -> int:
    """Return the entries of a tile, rounded up so that the next one is aligned: last bits of products depend on it."""
    step = ALIGNMENT // item
    return -(-rows * columns // step) * step


def form(kernel: Pairwise, left: Tensor, right: Tensor, tile: Tensor, share_out: ShareOut) -> None:
    """Write kernel values into a tile, a few rows at a time so that they stay in the cache of a CPU."""

    def write(rows: slice) -> None:
        part = tile[rows]
        into_values(kernel, torch.mm(left[rows], right.T, out=part))

    # Also small tiles have parts for several threads.
    share_out(write, _parts(len(tile), tile.device, min(PART_ROWS, -(-len(tile) // FORMING_PARTS))))


def multiply(tile: Tensor, rows: Strip, columns: Strip | None, share_out: ShareOut) -> None:
    """Add the product of a tile to the side of its rows and to that of its columns; None if these are its rows."""
    _add_product(rows.product, (columns or rows).block, tile.T, share_out)
    if columns is not None:
        _add_product(columns.product, rows.block, tile, share_out)


def tile_rows(device: torch.device) -> int:
    """Return how many rows a tile has on a device."""
    return size_on(device, TILE_ROWS)


def lanes(tiles: int, numbers: int, device: torch.device) -> int:
    """Return in how many parts a product of so many tiles is summed, each of so many numbers.

    It does not depend on the number of threads, so that they do not change the sums.
    """
    return max(1, min(MOST_LANES, tiles, LANE_NUMBERS // numbers)) if device.type == "cpu" else 1


def _add_product(out: Tensor, rows: Tensor, matrix: Tensor, share_out: ShareOut) -> None:
    """Add a product to a few rows, in blocks of columns."""
    parts = _parts(matrix.shape[1], out.device)
    share_out(lambda columns: out[:, columns].addmm_(rows, matrix[:, columns]), parts)


def _parts(count: int, device: torch.device, rows: int = PART_ROWS) -> list[slice]:
    return slices(count, count if device.type == "cuda" else rows)
