"""Checks of single values: errors give the parameter, the value and what is allowed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def number(name: str, value: Any, *, positive: bool = True) -> float:
    """Return a positive (or non-negative) finite number."""
    kind = "a positive number" if positive else "a number of at least 0"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: expected {kind}, got {value!r}")
    if not is_finite(value) or value < 0 or (positive and value == 0):
        raise ValueError(f"{name}: expected {kind}, got {value}")
    return float(value)


def real(name: str, value: Any) -> float:
    """Return a finite number of either sign."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    if not is_finite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    return float(value)


def one_of(name: str, value: Any, allowed: Sequence[Any], or_else: str = "") -> Any:
    """Return the value if it is allowed; `or_else` are other values that the caller has accepted already."""
    if not any(value is entry or (isinstance(value, str) and value == entry) for entry in allowed):
        others = f", and {or_else}" if or_else else ""
        raise ValueError(f"{name}: got {value!r}, allowed are {', '.join(map(str, allowed))}{others}")
    return value


def is_tensor(samples: Any) -> bool:
    """Whether samples are a tensor, without importing torch."""
    return any((kind.__module__, kind.__name__) == ("torch", "Tensor") for kind in type(samples).__mro__)


def is_sparse(samples: Any) -> bool:
    """Whether samples are a sparse matrix, without importing scipy."""
    return hasattr(samples, "tocsr")


def is_finite(value: numbers.Real | float) -> bool:
    """Whether a number is finite in float64; Python has integers that are not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def integer(name: str, value: Any, least: int) -> int:
    """Return an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}: expected an integer of at least {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, got {value}")
    return int(value)


def jobs(name: str, value: Any) -> int | None:
    """Return a number of processes as joblib takes it: None, a positive integer, or a negative one from the end."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Integral) or value == 0):
        raise ValueError(f"{name}: expected a number of processes, or -1 for one per processor, got {value!r}")
    return value if value is None else int(value)


def boolean(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def seed(value: Any) -> Any:
    """Return a seed or a random state as it is, after a check that it is one.

    A generator of its own would take longer to make than a decomposition of a few samples.
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return value if is_integer and 0 <= value < 1 << 32 else random_state(value)


def random_state(value: Any) -> np.random.RandomState:
    """Return the generator for a seed or a random state."""
    from sklearn.utils import check_random_state

    try:
        # bool is a subclass of int, but a mistake here, as is the module numpy.random.
        is_mistake = isinstance(value, bool | np.bool_) or value is np.random
        return check_random_state(repr(value) if is_mistake else value)
    except ValueError as error:
        allowed = "an integer from 0 to 2**32 - 1, a RandomState or None"
        raise ValueError(f"random_state: expected {allowed}, got {value!r}") from error


def not_numbers(array: np.ndarray, frame: Any = None) -> str:
    """Describe values of an array that numpy would wrongly convert to numbers; an empty string if there are none.

    Values of a data frame are described with the name of their column.
    """
    kind = array.dtype.kind
    if kind not in "biuf" and hasattr(frame, "iloc") and hasattr(frame, "columns"):
        columns = ((name, not_numbers(np.asarray(column))) for name, column in frame.items())
        return next((f"{found} in column {name!r}" for name, found in columns if found), "")
    if kind in "USO":
        texts = (entry for entry in array.flat if isinstance(entry, str | bytes))
        return next((f"text like {str(entry)[:20]!r}" for entry in texts), "")
    return "dates or times" if kind in "Mm" else ""


def dense_real(name: str, tensor: Tensor) -> Tensor:
    """Return a dense tensor of real numbers, or raise an error."""
    import torch

    odd = {
        "a sparse": tensor.layout != torch.strided,
        "a complex": tensor.is_complex(),
        "a quantized": tensor.is_quantized,
        "an empty": tensor.is_meta,
    }
    if found := [kind for kind, is_so in odd.items() if is_so]:
        raise TypeError(f"{name}: expected a dense real tensor, got {found[0]} one")
    return tensor


def is_list(value: Any) -> bool:
    """Whether a value is a sequence of entries; text and arrays without dimensions are not."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def per_layer(name: str, value: Any, layers: int) -> tuple[float, ...]:
    """Return one positive number per layer."""
    given = [value] * layers if isinstance(value, numbers.Real) else value
    if not is_list(given):
        raise TypeError(f"{name}: expected a positive number or one per layer, got {value!r}")
    if len(given) != layers:
        raise ValueError(f"{name}: expected one per layer, {layers} in all, got {len(given)}")
    return tuple(number(name, entry) for entry in given)
