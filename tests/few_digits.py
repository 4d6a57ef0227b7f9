"""A hundred digits to train on and twenty others, for tests of the estimator."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

DIGITS = load_digits().data / 16
X, NEW = DIGITS[:100], DIGITS[100:120]


def relative(a, b) -> float:
    """Return how far a is from b, relative to the size of b."""
    return float(np.linalg.norm(np.asarray(a) - np.asarray(b)) / np.linalg.norm(np.asarray(b)))
