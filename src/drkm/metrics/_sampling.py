"""Batches in which one factor is held fixed: from given rows, or from a full grid of factor values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.metrics._validation import check_codes, check_factors, require_integer, require_varied
from drkm.validation import checks


class RowSampler:
    """Batches of the given rows that share the value of one factor, drawn with replacement.

    Rows whose value occurs only once are not used as the first of a batch: 64 copies of one row have no
    variance in any code.

    Parameters
    ----------
    codes : ndarray of shape (n, m)
    labels : ndarray of shape (n, k)
    names : tuple of str
        Names of the factors, for errors.
    """

    def __init__(self, codes: np.ndarray, labels: np.ndarray, names: tuple[str, ...]) -> None:
        n, self.n_factors = labels.shape
        self.codes = codes
        order, starts, counts, firsts = [], [], [], []
        for j in range(self.n_factors):
            size = np.bincount(labels[:, j])
            start = np.cumsum(size) - size
            rows = labels[:, j]
            order.append(np.argsort(rows, kind="stable"))
            shared = np.flatnonzero(size[rows] > 1)
            if shared.size == 0:
                raise ValueError(
                    f"factors: no value of {names[j]} (column {j}) occurs in two rows, none can be held fixed"
                )
            starts.append(start[rows] + j * n)
            counts.append(size[rows])
            firsts.append(shared)
        self._order = np.concatenate(order).astype(np.int32)
        self._start, self._count = np.stack(starts), np.stack(counts)
        self._first = firsts

    def batches(self, factor: np.ndarray, batch: int, rng: np.random.Generator, *, pairs: bool) -> np.ndarray:
        """Return the rows of one batch per entry of `factor`, the factor that is held fixed.

        Parameters
        ----------
        factor : ndarray of shape (b,)
        batch : int
        rng : Generator
        pairs : bool
            Fix the factor within pairs rather than within the batch.

        Returns
        -------
        ndarray of shape (b, batch), or (2, b, batch) for pairs
        """
        width = batch if pairs else 1
        first = np.empty((factor.size, width), dtype=np.intp)
        for j in range(self.n_factors):
            which = np.flatnonzero(factor == j)
            rows = self._first[j]
            first[which] = rows[(rng.random((which.size, width)) * rows.size).astype(np.intp)]
        start, count = self._start[factor[:, None], first], self._count[factor[:, None], first]
        partner = rng.random((factor.size, batch))
        partner *= count
        rows = self._order[start + partner.astype(np.int32)]
        return np.stack([first, rows]) if pairs else rows


class GridSampler:
    """Batches from a full grid of factor values; the other factors are uniform and independent.

    Parameters
    ----------
    codes : ndarray of shape (product of sizes, m)
        In lexicographic order of the factor values.
    sizes : tuple of int
    """

    def __init__(self, codes: np.ndarray, sizes: tuple[int, ...]) -> None:
        self.codes, self.sizes, self.n_factors = codes, np.array(sizes), len(sizes)
        self._stride = np.array([math.prod(sizes[j + 1 :]) for j in range(len(sizes))])

    def batches(self, factor: np.ndarray, batch: int, rng: np.random.Generator, *, pairs: bool) -> np.ndarray:
        """As `RowSampler.batches`."""
        n = self.codes.shape[0]
        rows = rng.integers(n, size=(factor.size, batch), dtype=np.int32)
        stride, size = self._stride[factor][:, None], self.sizes[factor][:, None]
        first = rng.integers(n, size=rows.shape, dtype=np.int32) if pairs else rows[:, :1]
        # Replacing one digit of a uniform grid index leaves the other digits uniform.
        fixed = rows + ((first // stride) % size - (rows // stride) % size) * stride
        return np.stack([first, fixed]) if pairs else fixed


def make_sampler(codes: Any, factors: Any, factor_sizes: Sequence[int] | None, metric: str) -> RowSampler | GridSampler:
    """Return the sampler for given rows (`factor_sizes` None) or for a full grid, after validation.

    Parameters
    ----------
    codes : array-like of shape (n, m)
    factors : array-like of shape (n, k), or None for a grid in lexicographic order
    factor_sizes : sequence of int, optional
    metric : str
        Name of the metric, for errors.

    Returns
    -------
    RowSampler or GridSampler
    """
    z = check_codes(codes)
    if factor_sizes is None:
        y = check_factors(factors, z.shape[0])
        require_integer(y, metric)
        require_varied(y, metric)
        return RowSampler(z, y.labels, y.names)
    if not isinstance(factor_sizes, Sequence | np.ndarray):
        raise TypeError(f"factor_sizes: expected one integer per factor, got {factor_sizes!r}")
    sizes = tuple(checks.integer("factor_sizes", size, 2) for size in factor_sizes)
    n = math.prod(sizes)
    if z.shape[0] != n:
        shape = "×".join(map(str, sizes))
        raise ValueError(f"codes: a full grid of {shape} values has {n} rows, got {z.shape[0]}")
    if factors is not None:
        y = check_factors(factors, n)
        if y.count != len(sizes):
            raise ValueError(f"factor_sizes: one size per factor is needed, {y.count}, got {len(sizes)}")
        if y.sizes != sizes:
            raise ValueError(f"factor_sizes: the factors have {y.sizes} distinct values, got {sizes}")
        place = np.ravel_multi_index(tuple(y.labels.T), sizes)
        if (np.bincount(place, minlength=n) != 1).any():
            raise ValueError("factors: a full grid holds every combination of values once, these rows do not")
        ordered = np.empty_like(z)
        ordered[place] = z
        z = ordered
    return GridSampler(z, sizes)
