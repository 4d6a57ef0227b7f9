"""The memory layout of all numbers: contiguous rows from an aligned address.

The last bits of sums in linear algebra routines depend on where the numbers begin in memory. All inputs are brought
into this layout first, so that arrays, data frames and tensors of any order, stride and offset give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

#: bytes of a cache line and of the longest vector register; torch aligns its own tensors to this
ALIGNMENT = 64


def aligned(tensor: Tensor) -> Tensor:
    """Return the tensor itself if it has this layout, otherwise a copy that does."""
    if tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT == 0:
        return tensor
    import torch

    return tensor.clone(memory_format=torch.contiguous_format)


def copied(array: np.ndarray, dtype: Any = None) -> Tensor:
    """Return a copy of an array as a tensor in this layout, which copies by numpy need not have."""
    import torch

    kind = torch.from_numpy(np.empty(0, dtype=array.dtype if dtype is None else dtype)).dtype
    out = torch.empty(array.shape, dtype=kind)
    out.numpy()[...] = array
    return out


def slices(n: int, step: int, begin: int = 0) -> list[slice]:
    """Return slices of `step` rows or columns that cover those from `begin` to n."""
    return [slice(first, min(first + step, n)) for first in range(begin, n, step)]
