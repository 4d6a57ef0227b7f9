"""Elementwise operations and sums of rows, by numpy or torch, whichever is faster on this CPU."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from torch import Tensor

#: numpy's names of instruction sets with which its exp takes half the time of torch's, and its sums a third of the time
#: of torch's without vector instructions
_WIDE, _VECTORS = ("AVX512", "X86_V4"), ("AVX2", "AVX512", "X86_V3", "X86_V4")
#: entries that one thread finishes before a second one starts
_FEW = 1 << 19


def exp_(exponents: Tensor) -> Tensor:
    """Replace numbers by their exponentials, without gradients; the number of threads does not change their bits."""
    array = _array(exponents) if _numpy_has("exp", _WIDE) else None
    if array is None:
        return exponents.exp_()
    threads = min(torch.get_num_threads(), array.size // _FEW, len(array) if array.ndim else 1)
    if threads <= 1:
        np.exp(array, out=array)
        return exponents
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(np.exp, part, out=part) for part in np.array_split(array, threads)]:
            done.result()
    return exponents


def at_most_zero_(numbers: Tensor) -> Tensor:
    """Replace positive numbers by 0, without gradients."""
    array = _array(numbers) if _numpy_sums() else None
    if array is None:
        return numbers.clamp_(max=0)
    with np.errstate(invalid="ignore"):
        np.minimum(array, 0.0, out=array)
    return numbers


def scaled_sum_(tile: Tensor, scale: float, columns: Tensor, rows: Tensor, *, rounded: bool) -> Tensor:
    """Replace a tile by scale·tile + columns + rows, numbers that are added to each row and to each column.

    With `rounded` the product is rounded before the sums, so that equal numbers that cancel leave exactly 0.
    """
    array = _array(tile) if _numpy_sums() else None
    if array is not None:
        # Like torch, leave checks for infinite numbers to the caller.
        with np.errstate(all="ignore"):
            array *= scale
            array += columns.numpy()
            array += rows.numpy()[:, None]
        return tile
    if rounded:
        tile.mul_(scale).add_(columns)
    else:
        torch.add(columns, tile, alpha=scale, out=tile)
    return tile.add_(rows[:, None])


def squared_lengths(rows: Tensor) -> Tensor:
    """Return ‖x‖² of each row."""
    array = _array(rows) if _numpy_sums() else None
    return torch.linalg.vecdot(rows, rows) if array is None else torch.from_numpy(np.einsum("ij,ij->i", array, array))


def lengths(A: Tensor, dim: int) -> Tensor:
    """Return the lengths of columns (`dim=0`) or rows (`dim=1`), also where their squares would vanish or overflow."""
    largest = torch.linalg.vector_norm(A, math.inf, dim=dim)
    info = torch.finfo(A.dtype)
    low, high = math.sqrt(info.tiny) / info.eps, math.sqrt(info.max / A.shape[dim])
    if ((largest == 0) | ((largest > low) & (largest < high))).all():
        return torch.linalg.vector_norm(A, dim=dim)
    unit = torch.where(largest > 0, largest, 1.0)
    return torch.linalg.vector_norm(A / unit.unsqueeze(dim), dim=dim) * unit


def mean_of(rows: Tensor) -> Tensor:
    """Return the mean of rows."""
    array = _array(rows) if _numpy_sums() else None
    return rows.mean(dim=0) if array is None else torch.from_numpy(array.mean(axis=0))


def _array(tensor: Tensor) -> np.ndarray | None:
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
    return torch.backends.cpu.get_cpu_capability() == "DEFAULT" and _numpy_has("add", _VECTORS)


@cache
def _numpy_has(function: str, instructions: tuple[str, ...]) -> bool:
    # Not decided by timing: results must not depend on the load. Before numpy 2.1 there is no way to tell.
    introspect = getattr(np.lib, "introspect", None)
    if introspect is None:
        return False
    loops = introspect.opt_func_info(func_name=f"^{function}$", signature="float64").get(function, {})
    return any(loop["current"].startswith(instructions) for loop in loops.values())
