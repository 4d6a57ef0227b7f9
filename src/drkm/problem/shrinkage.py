"""Weights of components in denoising, between 0 and 1, computed from the eigenvalues of K_1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from drkm.validation import checks

#: weights of eigenvalues λ > 0 relative to the threshold, r = t/λ
KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "soft": lambda r: (1 - r).clamp(min=0),
    "firm": lambda r: (1 - r.square()).clamp(min=0),
    "ridge": lambda r: 1 / (1 + r),
    "hard": lambda r: (r < 1).to(r),
}


@dataclass(frozen=True)
class Shrinkage:
    """Weights f(λ) of components as a function of their eigenvalues λ and a threshold t.

    "soft" is max(1 - t/λ, 0), "firm" max(1 - (t/λ)², 0), "ridge" λ/(λ + t), and "hard" keeps the components above t.

    Parameters
    ----------
    threshold : float
        t, in the units of the eigenvalues of K_1 (`eigenvalues_` of a model with one layer); 0 keeps all.
    kind : {"soft", "firm", "ridge", "hard"}
    """

    threshold: float
    kind: str = "soft"

    @classmethod
    def of(cls, value: Any) -> Shrinkage | None:
        """Parse a parameter `shrink`: None, t, or a pair such as ("ridge", t)."""
        if value is None or isinstance(value, Shrinkage):
            return value
        kind, threshold = value if checks.is_list(value) and len(value) == 2 else ("soft", value)
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"shrink: unknown kind {kind!r}, allowed are {', '.join(KINDS)}")
        return cls(checks.number("shrink", threshold, positive=False), kind)

    @property
    def parameter(self) -> float | tuple[str, float]:
        """The value of a parameter `shrink` that gives this shrinkage."""
        return self.threshold if self.kind == "soft" else (self.kind, self.threshold)

    def weights(self, values: Tensor) -> Tensor:
        """Return f(λ) of eigenvalues, 0 for those that are not positive."""
        positive = values > 0
        ratio = self.threshold / torch.where(positive, values, 1.0)
        return torch.where(positive, KINDS[self.kind](ratio), 0.0)

    def rank(self, values: Tensor) -> int:
        """Return how many of these eigenvalues, in descending order, have a nonzero weight."""
        return int((self.weights(values) > 0).sum())
