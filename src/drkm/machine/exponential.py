"""The exponential function, by numpy or torch, whichever is faster on this CPU."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

#: numpy's names of instruction sets with which its exp takes half the time of torch's
_WIDE = ("AVX512", "X86_V4")


def exp_(exponents: Tensor) -> Tensor:
    """Replace numbers by their exponentials, without gradients; torch with several threads is faster than numpy."""
    if exponents.is_cuda or torch.get_num_threads() > 1 or not _numpy_is_quick():
        return exponents.exp_()
    try:
        array = exponents.numpy()
    except RuntimeError:
        # Inside torch.func transformations a tensor has no memory of its own.
        return exponents.exp_()
    np.exp(array, out=array)
    return exponents


@cache
def _numpy_is_quick() -> bool:
    # Not decided by timing: results must not depend on the load. Before numpy 2.1 there is no way to tell.
    introspect = getattr(np.lib, "introspect", None)
    if introspect is None:
        return False
    loops = introspect.opt_func_info(func_name="^exp$", signature="float64").get("exp", {})
    return any(loop["current"].startswith(_WIDE) for loop in loops.values())
