"""Means of columns, and what is left of columns without them."""

from __future__ import annotations

import numpy as np

from drkm.machine.layout import slices

#: torch sums n numbers in four levels of at least 16 and some n^¼ terms each. Rounding errors of random sign in a chain
#: of c additions stay below 4√c·eps/2 of the sizes that are added, except once in 3,000 sums (Higham and Mary, 2019).
#: The chains of `column_means` are longer, but what is added there are differences.
LEVELS, LEAST_LEVEL, LIKELY = 4, 16, 4
#: rows that are added before their sums are, and rows of which the rounding is removed at a time
CHAIN, ROWS = 128, 1024


def rounding_of_mean(samples: int, eps: float) -> float:
    """Return the relative rounding error of the mean of so many samples."""
    chain = LEVELS * max(LEAST_LEVEL, samples ** (1 / LEVELS))
    return LIKELY * chain**0.5 * eps / 2


def column_means(A: np.ndarray) -> np.ndarray:
    """Return the mean of every column; numpy's own adds row after row, so that its error grows with their number."""
    return np.add.reduceat(A, np.arange(0, len(A), CHAIN), axis=0).sum(axis=0) / len(A)


def remove_mean_(A: np.ndarray) -> np.ndarray:
    """Remove the mean of every column in place, and return the means.

    Remainders within rounding of the mean are set to zero: equal numbers would otherwise leave a spread that a fit
    would follow.
    """
    first = A[0].copy()
    # Sums of differences are more exact than those of numbers far from zero, and those of equal numbers are 0.
    A -= first
    mean = column_means(A)
    within = rounding_of_mean(len(A), float(np.finfo(A.dtype).eps)) * np.abs(first + mean)
    for rows in slices(len(A), ROWS):
        part = A[rows]
        part -= mean
        part[np.abs(part) <= within] = 0.0
    return first + mean
