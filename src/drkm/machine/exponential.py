"""The exponential function, by numpy or torch, whichever is faster on this CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from torch import Tensor

#: numpy's names of instruction sets with which its exp takes half the time of torch's
_WIDE = ("AVX512", "X86_V4")
#: entries that one thread finishes before a second one starts
_FEW = 1 << 19


def exp_(exponents: Tensor) -> Tensor:
    """Replace numbers by their exponentials, without gradients; the number of threads does not change their bits."""
    if exponents.is_cuda or not _numpy_is_quick():
        return exponents.exp_()
    try:
        array = exponents.numpy()
    except RuntimeError:
        # Inside torch.func transformations a tensor has no memory of its own.
        return exponents.exp_()
    threads = min(torch.get_num_threads(), array.size // _FEW, len(array) if array.ndim else 1)
    if threads <= 1:
        np.exp(array, out=array)
        return exponents
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(np.exp, part, out=part) for part in np.array_split(array, threads)]:
            done.result()
    return exponents


@cache
def _numpy_is_quick() -> bool:
    # Not decided by timing: results must not depend on the load. Before numpy 2.1 there is no way to tell.
    introspect = getattr(np.lib, "introspect", None)
    if introspect is None:
        return False
    loops = introspect.opt_func_info(func_name="^exp$", signature="float64").get("exp", {})
    return any(loop["current"].startswith(_WIDE) for loop in loops.values())
