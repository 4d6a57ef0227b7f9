"""Elementwise operations and sums of rows of arrays and tensors, by numpy or torch, whichever is faster on this CPU.

Arrays are left to numpy, tensors to torch unless numpy is faster. Torch is imported only for millions of exponentials
where numpy has no vector instructions for them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from drkm.machine import threads

if TYPE_CHECKING:
    from torch import Tensor

#: an array, or a tensor
Numbers = TypeVar("Numbers", bound=Any)

#: numpy's names of instruction sets with which its exp takes half the time of torch's, and its sums a third of the time
#: of torch's without vector instructions
_WIDE, _VECTORS = ("AVX512", "X86_V4"), ("AVX2", "AVX512", "X86_V3", "X86_V4")
#: entries that one thread finishes before a second one starts
_FEW = 1 << 19
#: exponentials from which torch is worth its import where numpy's take two to three times as long
MANY = 1 << 24
#: numbers in the buffer of numpy's operations, a multiple of 16
_BUFFER = 256
#: rows of a tensor whose squares are held at a time
_ROWS = 1024


def exp_(exponents: Numbers, *, by_torch: bool = False) -> Numbers:
    """Replace numbers by their exponentials, without gradients; the number of threads does not change their bits.

    Those of an array are left to torch if the caller found that `torch_pays`.
    """
    if isinstance(exponents, np.ndarray):
        if by_torch:
            sys.modules["torch"].from_numpy(exponents).exp_()
        else:
            np.exp(exponents, out=exponents)
        return exponents
    array = _array_of(exponents) if _numpy_has("exp", _WIDE) else None
    if array is None:
        return exponents.exp_()
    parts = min(threads.count(), array.size // _FEW, len(array) if array.ndim else 1)
    if parts <= 1:
        np.exp(array, out=array)
        return exponents
    with ThreadPoolExecutor(parts) as pool:
        for done in [pool.submit(np.exp, part, out=part) for part in np.array_split(array, parts)]:
            done.result()
    return exponents


def torch_pays(count: int) -> bool:
    """Whether so many exponentials of arrays are worth the import of torch, which follows if they are."""
    return count >= MANY and _torch_has_faster_exp()


@contextmanager
def tiles_in_place() -> Iterator[None]:
    """Let numpy compute tiles where they are, in the calling thread, and leave infinite numbers to the caller.

    Short rows that are not adjacent in memory would be copied into its buffer and back, which takes longer than a sum
    and a third of the time of an exponential.
    """
    # Both belong to a thread: those of a pool do not inherit them.
    with np.errstate(all="ignore"):
        before = np.setbufsize(_BUFFER)
        try:
            yield
        finally:
            np.setbufsize(before)


def at_most_zero_(numbers: Numbers) -> Numbers:
    """Replace positive numbers by 0, without gradients."""
    array = _summed_by_numpy(numbers)
    if array is None:
        return numbers.clamp_(max=0)
    with np.errstate(invalid="ignore"):
        # Most tiles have none, and reading takes a third of the time of writing.
        if array.size and not array.max() <= 0:
            np.minimum(array, 0.0, out=array)
    return numbers


def scaled_sum_(tile: Numbers, scale: float, columns: Numbers, rows: Numbers, *, rounded: bool) -> Numbers:
    """Replace a tile by scale·tile + columns + rows, numbers that are added to each row and to each column.

    With `rounded` the product is rounded before the sums, so that equal numbers that cancel leave exactly 0.
    """
    array = _summed_by_numpy(tile)
    if array is not None:
        # Like torch, leave checks for infinite numbers to the caller.
        with np.errstate(all="ignore"):
            array *= scale
            array += np.asarray(columns)
            array += np.asarray(rows)[:, None]
        return tile
    if rounded:
        tile.mul_(scale).add_(columns)
    else:
        sys.modules["torch"].add(columns, tile, alpha=scale, out=tile)
    return tile.add_(rows[:, None])


def squared_lengths(rows: Numbers) -> Numbers:
    """Return ‖x‖² of each row."""
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->i", rows, rows)
    torch, array = sys.modules["torch"], _summed_by_numpy(rows)
    if array is None:
        return torch.cat([torch.linalg.vecdot(part, part) for part in rows.split(_ROWS)])
    return torch.from_numpy(np.einsum("ij,ij->i", array, array))


def sum_of_squares(numbers: Numbers) -> Any:
    """Return the squared length of a vector, that of an array without threads of a BLAS, which stay awake for long."""
    return np.einsum("i,i->", numbers, numbers) if isinstance(numbers, np.ndarray) else numbers.dot(numbers)


def lengths(A: Tensor, dim: int) -> Tensor:
    """Return the lengths of columns (`dim=0`) or rows (`dim=1`), also where their squares would vanish or overflow."""
    torch = sys.modules["torch"]
    largest = torch.linalg.vector_norm(A, math.inf, dim=dim)
    info = torch.finfo(A.dtype)
    low, high = math.sqrt(info.tiny) / info.eps, math.sqrt(info.max / A.shape[dim])
    if ((largest == 0) | ((largest > low) & (largest < high))).all():
        return torch.linalg.vector_norm(A, dim=dim)
    unit = torch.where(largest > 0, largest, 1.0)
    return torch.linalg.vector_norm(A / unit.unsqueeze(dim), dim=dim) * unit


def mean_of(rows: Numbers) -> Numbers:
    """Return the mean of rows."""
    array = _summed_by_numpy(rows)
    if array is None:
        return rows.mean(dim=0)
    mean = array.mean(axis=0)
    return mean if array is rows else sys.modules["torch"].from_numpy(mean)


def _summed_by_numpy(numbers: Any) -> np.ndarray | None:
    """Return an array, or that in the memory of a tensor for which numpy is faster, or None if torch shall compute."""
    if isinstance(numbers, np.ndarray):
        return numbers
    return _array_of(numbers) if _numpy_sums() else None


def _array_of(tensor: Tensor) -> np.ndarray | None:
    """Return an array in the memory of a tensor, or None if it has none of its own or is on a GPU."""
    if tensor.is_cuda:
        return None
    try:
        return tensor.numpy()
    except RuntimeError:
        # Inside torch.func transformations.
        return None


@cache
def _numpy_sums() -> bool:
    """Whether torch has no vector instructions where numpy has some."""
    return sys.modules["torch"].backends.cpu.get_cpu_capability() == "DEFAULT" and _numpy_has("add", _VECTORS)


@cache
def _torch_has_faster_exp() -> bool:
    """Whether torch, which is imported for this, has vector instructions for exponentials where numpy has none."""
    if _numpy_has("exp", _WIDE):
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.backends.cpu.get_cpu_capability() != "DEFAULT"


@cache
def _numpy_has(function: str, instructions: tuple[str, ...]) -> bool:
    # Not decided by timing: results must not depend on the load. Before numpy 2.1 there is no way to tell.
    introspect = getattr(np.lib, "introspect", None)
    if introspect is None:
        return False
    loops = introspect.opt_func_info(func_name=f"^{function}$", signature="float64").get(function, {})
    return any(loop["current"].startswith(instructions) for loop in loops.values())
