"""Base classes of image datasets with known generative factors."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drkm.datasets._random import RandomState, as_generator
from drkm.files import write_whole
from drkm.validation import checks

Images = NDArray[np.uint8]
Factors = NDArray[np.int64]


class FactorDataset(ABC):
    """Images that are a function of discrete factors, generated or looked up on demand.

    Rows are numbered in C order of the factor grid (the last factor varies fastest). A subclass supplies
    `_images`; one that does not hold the whole grid also overrides `_rows_of` and `factors_at`.

    Attributes
    ----------
    name : str
    factor_names : tuple of str
    factor_sizes : tuple of int
        Number of classes of each factor.
    image_shape : tuple of int
        (64, 64) or (64, 64, 3).
    """

    def __init__(
        self,
        name: str,
        factor_names: Sequence[str],
        factor_sizes: Sequence[int],
        image_shape: tuple[int, ...],
    ) -> None:
        self.name = name
        self.factor_names = tuple(str(n) for n in factor_names)
        self.factor_sizes = tuple(int(s) for s in factor_sizes)
        self.image_shape = image_shape

    def __len__(self) -> int:
        return int(np.prod(self.factor_sizes))

    def __repr__(self) -> str:
        factors = ", ".join(f"{n} {s}" for n, s in zip(self.factor_names, self.factor_sizes, strict=True))
        shape = "×".join(map(str, self.image_shape))
        return f"<{type(self).__name__} {self.name}: {len(self):,} images {shape}; {factors}>"

    def images_at(self, factors: ArrayLike) -> Images:
        """Return the images with the given factors.

        Parameters
        ----------
        factors : integer array of shape (n, n_factors)
            Class indices, `0 <= factors[:, j] < factor_sizes[j]`.

        Returns
        -------
        uint8 array of shape (n, 64, 64) or (n, 64, 64, 3)
        """
        checked = self._check(factors)
        return self._images(checked, self._rows_of(checked))

    def sample(self, n: int, random_state: RandomState = None, replace: bool = False) -> tuple[Images, Factors]:
        """Draw images uniformly at random.

        Parameters
        ----------
        n : int
            Number of images; without replacement at most `len(self)`.
        random_state : int, numpy generator or None
            The same integer gives the same rows.
        replace : bool
            Whether an image may be drawn twice.

        Returns
        -------
        images : uint8 array of shape (n, 64, 64) or (n, 64, 64, 3)
        factors : int64 array of shape (n, n_factors)
        """
        n = checks.integer("n", n, 1)
        if not replace and n > len(self):
            raise ValueError(f"n: {self.name} has {len(self)} images, got n={n} with replace=False")
        rows = as_generator(random_state).choice(len(self), n, replace=bool(replace))
        factors = self.factors_at(rows)
        return self._images(factors, rows), factors

    def factors_at(self, rows: ArrayLike) -> Factors:
        """Return the factors of the images numbered `rows`, shape (n, n_factors)."""
        return np.stack(np.unravel_index(self._check_rows(rows), self.factor_sizes), axis=1).astype(np.int64)

    @abstractmethod
    def _images(self, factors: Factors, rows: NDArray[np.int64]) -> Images:
        """Return the images of checked factors and their row numbers."""

    def _rows_of(self, factors: Factors) -> NDArray[np.int64]:
        return np.ravel_multi_index(tuple(factors.T), self.factor_sizes).astype(np.int64)

    def _check_rows(self, rows: ArrayLike) -> NDArray[np.int64]:
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(f"rows: expected a 1-d integer array, got {numbers.dtype} of shape {numbers.shape}")
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(self)):
            raise ValueError(
                f"rows: expected numbers from 0 to {len(self) - 1}, got {numbers.min()} to {numbers.max()}"
            )
        return numbers.astype(np.int64)

    def _check(self, factors: ArrayLike) -> Factors:
        given = np.asarray(factors)
        if given.ndim != 2 or given.shape[1] != len(self.factor_sizes):
            raise ValueError(
                f"factors: expected shape (n, {len(self.factor_sizes)}) for {', '.join(self.factor_names)},"
                f" got shape {given.shape}"
            )
        if given.dtype.kind not in "iu":
            raise ValueError(f"factors: expected integer class indices, got {given.dtype}")
        for name, size, column in zip(self.factor_names, self.factor_sizes, given.T, strict=True):
            if len(column) and not (column.min() >= 0 and column.max() < size):
                raise ValueError(f"factors: expected 0 to {size - 1} for {name}, got {column.min()} to {column.max()}")
        return given.astype(np.int64)


class ArrayDataset(FactorDataset):
    """Images held in memory as uint8, for the whole factor grid or a part of it.

    Parameters
    ----------
    name, factor_names, factor_sizes
        As in `FactorDataset`.
    images : uint8 array of shape (n, 64, 64) or (n, 64, 64, 3)
    factors : integer array of shape (n, n_factors)
        One row of classes per image; no combination twice.
    """

    def __init__(
        self,
        name: str,
        factor_names: Sequence[str],
        factor_sizes: Sequence[int],
        images: Images,
        factors: ArrayLike,
    ) -> None:
        super().__init__(name, factor_names, factor_sizes, images.shape[1:])
        self._stored = images
        self._factors = self._check(factors)
        if len(self._factors) != len(images):
            raise ValueError(f"factors: {len(images)} images need as many rows, got {len(self._factors)}")
        self._row_at = np.full(int(np.prod(self.factor_sizes)), -1, dtype=np.int64)
        self._row_at[super()._rows_of(self._factors)] = np.arange(len(images))
        if np.count_nonzero(self._row_at >= 0) != len(images):
            raise ValueError("factors: expected each combination of classes once, got some twice")

    def __len__(self) -> int:
        return len(self._stored)

    def factors_at(self, rows: ArrayLike) -> Factors:
        """Return the factors of the images numbered `rows`, shape (n, n_factors)."""
        return self._factors[self._check_rows(rows)]

    def save_compact(self, path: str | os.PathLike[str]) -> None:
        """Write a compact `.npz` that the loader reads, whole or not at all: `images`, `factors`, `factor_names`."""
        names, factors = np.array(self.factor_names), self._factors.astype(np.int16)
        write_whole(
            path, lambda file: np.savez_compressed(file, images=self._stored, factors=factors, factor_names=names)
        )

    def _rows_of(self, factors: Factors) -> NDArray[np.int64]:
        rows = self._row_at[super()._rows_of(factors)]
        if np.any(rows < 0):
            missing = factors[np.argmin(rows)]
            raise ValueError(
                f"factors: {self.name} holds {len(self)} of {len(self._row_at)} combinations,"
                f" and not {tuple(missing.tolist())}"
            )
        return rows

    def _images(self, factors: Factors, rows: NDArray[np.int64]) -> Images:
        return self._stored[rows]
