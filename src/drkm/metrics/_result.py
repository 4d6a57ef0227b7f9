"""The result of every metric: an immutable object that converts to a number."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.size <= 12:
            return np.array2string(value, precision=3, suppress_small=True, separator=", ", max_line_width=200)
        return "<" + "×".join(str(size) for size in value.shape) + " array>"
    return repr(value)


@dataclass(frozen=True, eq=False, repr=False)
class MetricResult:
    """A score and its details; `float(result)` is the score.

    Attributes
    ----------
    score : float
        The value of the metric.
    """

    score: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __float__(self) -> float:
        return float(self.score)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else repr(self)

    def __repr__(self) -> str:
        inside = ", ".join(f"{field.name}={_show(getattr(self, field.name))}" for field in fields(self))
        return f"{type(self).__name__}({inside})"
