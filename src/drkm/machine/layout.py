"""One layout of memory for all numbers: rows one after the other, from an address that vector instructions like.

Sums of the linear algebra begin elsewhere where numbers begin elsewhere, and have other last bits then. What comes from
outside is brought into this layout where it comes in, so that an array, a frame and a tensor of any order, stride and
offset give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

#: bytes: a line of the cache and the longest vector register; torch begins its own tensors there
ALIGNMENT = 64


def aligned(tensor: Tensor) -> Tensor:
    """Return the tensor itself where it has this layout, else a copy that has."""
    if tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def copied(array: np.ndarray, dtype: Any = None) -> Tensor:
    """Return a copy of an array as a tensor in this layout, which copies of numpy's own need not have."""
    kind = torch.from_numpy(np.empty(0, dtype=array.dtype if dtype is None else dtype)).dtype
    out = torch.empty(array.shape, dtype=kind)
    out.numpy()[...] = array
    return out
