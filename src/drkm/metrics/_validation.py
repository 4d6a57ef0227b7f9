"""Validation of codes and factors: conversion to float64 codes and labelled factors, or a clear error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: advice on continuous factors, in Python
BIN = "bin continuous factors with drkm.metrics.discretize"


def as_array(values: Any, name: str) -> np.ndarray:
    """Return real, finite numbers in two dimensions, one row per sample."""
    # np.asarray refuses a torch tensor that requires a gradient or is on a GPU; duck typing avoids the
    # import of torch.
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected a two-dimensional array, got rows of different lengths") from None
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name}: expected real numbers, got an array of objects{_instead_of_text(name)}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}{_instead_of_text(name)}")
    if array.ndim != 2:
        raise ValueError(f"{name}: expected a two-dimensional array, one row per sample, got shape {array.shape}")
    if array.shape[0] == 0:
        raise ValueError(f"{name}: expected at least one row, got none")
    if array.shape[1] == 0:
        raise ValueError(f"{name}: expected at least one column, got none")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name}: expected finite numbers, got {array[row, column]} in row {row}, column {column}")
    return array


def _instead_of_text(name: str) -> str:
    return "; number the labels of each factor" if name.endswith("factors") else ""


def check_codes(codes: Any, name: str = "codes", *, at_least: int = 1) -> np.ndarray:
    """Return codes as a C-ordered float64 array.

    Parameters
    ----------
    codes : array-like of shape (n, m)
    name : str
        Name in errors.
    at_least : int
        Minimum number of columns for which the metric is defined.

    Returns
    -------
    ndarray of shape (n, m), float64
    """
    array = np.ascontiguousarray(as_array(codes, name), dtype=np.float64)
    if array.shape[1] < at_least:
        raise ValueError(f"{name}: at least {at_least} codes are needed, got {array.shape[1]}")
    return array


@dataclass(frozen=True, eq=False)
class Factors:
    """Ground-truth factors, as given and as labels.

    Attributes
    ----------
    values : ndarray of shape (n, k)
        The factors as given.
    names : tuple of str
        One name per column: that of the data frame, or `factor 0`, `factor 1`, ...
    labels : ndarray of shape (n, k), intp
        Column j numbers the distinct values of factor j in increasing order.
    sizes : tuple of int
        Number of distinct values of each factor.
    levels : tuple of ndarray
        The distinct values of each factor, in increasing order.
    """

    values: np.ndarray
    names: tuple[str, ...]
    labels: np.ndarray = field(repr=False)
    sizes: tuple[int, ...]
    levels: tuple[np.ndarray, ...] = field(repr=False)

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def count(self) -> int:
        """Number of factors."""
        return self.values.shape[1]


def _encode(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if column.dtype.kind in "iu":
        low, high = int(column.min()), int(column.max())
        if high - low < 4 * column.size + 1024 and high < 2**63:
            # Counting is several times faster than the sort in np.unique, and takes most of the time of MIG.
            shifted = column.astype(np.int64) - low
            present = np.bincount(shifted, minlength=high - low + 1) > 0
            rank = np.cumsum(present) - 1
            return np.flatnonzero(present) + low, rank[shifted]
    levels, labels = np.unique(column, return_inverse=True)
    return levels, labels.reshape(-1)


def check_factors(
    factors: Any,
    rows: int | None = None,
    name: str = "factors",
    codes: str = "codes",
    names: Sequence[str] | None = None,
) -> Factors:
    """Return factors with their labels.

    Parameters
    ----------
    factors : array-like of shape (n, k)
    rows : int, optional
        Number of rows of the codes.
    name, codes : str
        Names of factors and codes in errors.
    names : sequence of str, optional
        One name per factor; by default those of a data frame, or `factor 0`, `factor 1`, ...

    Returns
    -------
    Factors
    """
    if isinstance(factors, Factors):
        return factors
    columns = getattr(factors, "columns", None) if names is None else names
    array = as_array(factors, name)
    if rows is not None and array.shape[0] != rows:
        raise ValueError(f"{name}: as many rows as {codes} are needed, {rows}, got {array.shape[0]}")
    if names is not None and len(names) != array.shape[1]:
        raise ValueError(f"factor_names: one name per factor is needed, {array.shape[1]}, got {len(names)}")
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and np.array_equal(array, np.floor(array)) and np.abs(array).max() < 2**53:
        array = array.astype(np.int64)
    if columns is not None and len(columns) == array.shape[1]:
        titles = tuple(str(column) for column in columns)
    else:
        titles = tuple(f"factor {j}" for j in range(array.shape[1]))
    encoded = [_encode(array[:, j]) for j in range(array.shape[1])]
    labels = np.stack([labels for _, labels in encoded], axis=1).astype(np.intp, copy=False)
    return Factors(
        values=array,
        names=titles,
        labels=labels,
        sizes=tuple(len(levels) for levels, _ in encoded),
        levels=tuple(levels for levels, _ in encoded),
    )


def require_varied(factors: Factors, metric: str) -> None:
    """Raise if a factor has one value only: it has no entropy and nothing to predict."""
    for j, (name, size) in enumerate(zip(factors.names, factors.sizes, strict=True)):
        if size < 2:
            raise ValueError(
                f"factors: {metric} needs factors with at least two values, {name} (column {j}) has one, "
                f"{factors.levels[j][0]}; leave that column out"
            )


def require_integer(factors: Factors, metric: str) -> None:
    """Raise if a factor is not made of integers, as metrics that train a classifier need."""
    if factors.values.dtype.kind == "f":
        j = _first_non_integer(factors)
        raise ValueError(
            f"factors: {metric} needs integer labels, {factors.names[j]} (column {j}) holds "
            f"{_first_fraction(factors.values[:, j])}; {BIN}"
        )


def require_labels(factors: Factors, metric: str) -> None:
    """Raise if a non-integer factor is continuous: labels that hardly repeat carry no mutual information.

    Fractions that repeat (0, 0.5, 1, ...) are valid labels.
    """
    if factors.values.dtype.kind != "f":
        return
    for j, size in enumerate(factors.sizes):
        column = factors.values[:, j]
        if 2 * size > len(factors) and not np.array_equal(column, np.floor(column)):
            raise ValueError(
                f"factors: {metric} needs labels that repeat, {factors.names[j]} (column {j}) has {size} "
                f"distinct values in {len(factors)} rows; {BIN}"
            )


def _first_non_integer(factors: Factors) -> int:
    values = factors.values
    return int(np.argmax((values != np.floor(values)).any(axis=0)))


def _first_fraction(column: np.ndarray) -> float:
    return float(column[np.argmax(column != np.floor(column))])


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a generator with that seed."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(f"random_state: expected an integer of at least 0, got {random_state!r}") from None


def constant_columns(codes: np.ndarray) -> np.ndarray:
    """Return which columns are constant.

    The range is tested, not the variance: the variance of a column of 0.1 is positive by rounding.
    """
    return np.ptp(codes, axis=0) == 0


def standardized(codes: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """Return codes with mean 0 and standard deviation 1 (of `like`, by default themselves); constants become 0."""
    like = codes if like is None else like
    scale = like.std(axis=0)
    dead = constant_columns(like)
    scale[dead | (scale == 0)] = 1.0
    result = (codes - like.mean(axis=0)) / scale
    result[:, dead] = 0.0
    return result


def split(
    codes: Any, factors: Any, test_codes: Any, test_factors: Any, random_state: int, *, at_least: int = 1
) -> tuple[np.ndarray, Factors, np.ndarray, Factors]:
    """Return train and test rows: the given ones, or two thirds and one third of the rows at random.

    Parameters
    ----------
    codes, factors : array-like of shape (n, m) and (n, k)
    test_codes, test_factors : array-like of shape (t, m) and (t, k), or None
    random_state : int
        Seed of the split.
    at_least : int
        Minimum number of codes.

    Returns
    -------
    tuple
        Train codes, train factors, test codes, test factors.
    """
    _check_columns(codes, test_codes, "codes")
    _check_columns(factors, test_factors, "factors")
    codes = check_codes(codes, at_least=at_least)
    given = check_factors(factors, codes.shape[0])
    if (test_codes is None) != (test_factors is None):
        missing = "test_codes" if test_codes is None else "test_factors"
        raise ValueError(f"{missing}: test_codes and test_factors go together, got only one of them")
    if test_codes is None:
        n = codes.shape[0]
        if n < 3:
            raise ValueError(f"codes: at least 3 rows are needed to set test rows aside, got {n}")
        order = check_random_state(random_state).permutation(n)
        cut = -(-2 * n // 3)
        train, test = np.sort(order[:cut]), np.sort(order[cut:])
        return (
            codes[train],
            check_factors(given.values[train], names=given.names),
            codes[test],
            check_factors(given.values[test], names=given.names),
        )
    test_codes = check_codes(test_codes, "test_codes")
    if test_codes.shape[1] != codes.shape[1]:
        raise ValueError(
            f"test_codes: as many columns as codes are needed, {codes.shape[1]}, got {test_codes.shape[1]}"
        )
    other = check_factors(test_factors, test_codes.shape[0], "test_factors", "test_codes")
    if other.count != given.count:
        raise ValueError(f"test_factors: as many columns as factors are needed, {given.count}, got {other.count}")
    return codes, given, test_codes, other


def _check_columns(train: Any, test: Any, name: str) -> None:
    """Refuse data frames of training and test rows with other columns: columns are compared by their places."""
    known, got = (list(map(str, getattr(part, "columns", ()))) for part in (train, test))
    if known and got and known != got:
        raise ValueError(f"test_{name}: expected the columns of {name} in their order, {known}, got {got}")


def match_labels(train: Factors, test: Factors, j: int) -> np.ndarray:
    """Return labels of the test rows in the numbering of the train rows; -1 for a value not seen in training."""
    levels, values = train.levels[j], test.values[:, j]
    place = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
    return np.where(levels[place] == values, place, -1)
