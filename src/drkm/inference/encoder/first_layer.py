"""The first layer at new points: their scores t = H_1ᵀk_1(X, x), and the nearest samples.

Codes depend on a point only through its scores; the search for codes starts from the nearest samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.fitted import FittedModel
from drkm.inference.first_gram import FirstGram
from drkm.inference.subspace import component_sums
from drkm.machine.devices import size_on

#: distances between scores that are held at once
NEAREST_ENTRIES = {"cpu": 1 << 24, "cuda": 1 << 28}
#: number of other processes' samples whose scores and codes a process keeps
SHARED_STARTS = 1 << 17


class FirstLayer(ABC):
    """What an encoder needs to know about new points."""

    @abstractmethod
    def scores(self, rows: Tensor) -> Tensor:
        """Return t for every row, centred like the training Gram matrix."""

    @abstractmethod
    def affine(self) -> tuple[Tensor, Tensor]:
        """Return A and b of the scores t = rows·A - b."""

    @abstractmethod
    def nearest(self, rows: Tensor, count: int) -> Tensor:
        """Return the indices of the nearest training samples, m×count."""


class KernelRows(FirstLayer):
    """New points given by their kernel values with the training samples, m×n."""

    def __init__(self, fitted: FittedModel):
        self.H1 = fitted.layer_codes()[0]
        self.diagonal = first_diagonal(fitted)
        self.one_length = bool((self.diagonal == self.diagonal[0]).all())
        self.row_means = fitted.row_means
        if fitted.center:
            self.H1 = self.H1 - self.H1.mean(dim=0)

    def scores(self, rows: Tensor) -> Tensor:
        """Return t = H_1ᵀk_1(X, x), equation (27) of the paper for the components of the first layer."""
        return (rows if self.row_means is None else rows - self.row_means) @ self.H1

    def affine(self) -> tuple[Tensor, Tensor]:
        """Return H_1 and the shift of centring."""
        return self.H1, torch.zeros_like(self.H1[0]) if self.row_means is None else self.row_means @ self.H1

    def nearest(self, rows: Tensor, count: int) -> Tensor:
        """Return the samples nearest in feature space."""
        # If all samples have the same length, compare kernel values: 1 - 2k would round to 1 for small k.
        apart = -rows if self.one_length else torch.sub(self.diagonal, rows, alpha=2)
        return _smallest(apart, count)


class FeatureRows(FirstLayer):
    """New points given by their explicit features, m×D; the sum over samples is computed once.

    Codes depend on a point only through its scores, so that samples with similar scores are near: this compares s_1
    numbers per sample instead of D.
    """

    def __init__(self, fitted: FittedModel, gram: FirstGram):
        H1 = fitted.layer_codes()[0].contiguous()
        sums = component_sums(fitted, gram, H1)
        assert sums is not None
        self.sums = sums[:, :-1].contiguous()
        self.shift = sums[:, -1] @ self.sums if fitted.center else torch.zeros_like(H1[0])
        self.training_scores = starting_points(gram.centered.matmul(H1))

    def scores(self, rows: Tensor) -> Tensor:
        """Return t = (H_1ᵀΦ)φ(x)."""
        return rows @ self.sums - self.shift

    def affine(self) -> tuple[Tensor, Tensor]:
        """Return ΦᵀH_1 and the shift of centring."""
        return self.sums, self.shift

    def nearest(self, rows: Tensor, count: int) -> Tensor:
        """Return the samples with the nearest scores."""
        n = len(self.training_scores)
        height = max(1, size_on(rows.device, NEAREST_ENTRIES) // n)
        found = []
        for part in self.scores(rows).split(height):
            found.append(_smallest(_distances(part, self.training_scores), count))
        return torch.cat(found)


def starting_points(rows: Tensor) -> Tensor:
    """Return the rows of the samples from which codes of new points may start: all, if one process has them.

    If processes share the samples, each keeps some of all samples, so that it can encode without the others.
    """
    return rows if collectives.current() is None else collectives.spread_rows(rows, SHARED_STARTS)


def first_layer(fitted: FittedModel, gram: FirstGram) -> FirstLayer:
    """Return the first layer for new points: by explicit features if the kernel has them, else by kernel values."""
    return FeatureRows(fitted, gram) if fitted.kernels[0].is_explicit else KernelRows(fitted)


def first_diagonal(fitted: FittedModel) -> Tensor:
    """Return k_1(x_i, x_i) of every sample without forming K_1; samples in a file are read in tiles."""
    kernel, X = fitted.kernels[0], fitted.X
    if isinstance(X, Rows):
        return torch.cat([kernel.diagonal(X[rows]) for rows in X.tiles()])
    return kernel.diagonal(X)


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Return distances of all rows (squared on a GPU) from differences: products are too inexact for equal rows."""
    if not x.is_cuda:
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    # On a GPU cdist uses a block of threads per pair, and takes 25 times as long as this for ten columns.
    total = x.new_zeros(len(x), len(y))
    difference = torch.empty_like(total)
    for a, b in zip(x.T, y.T.contiguous(), strict=True):
        torch.sub(a[:, None], b, out=difference)
        total.addcmul_(difference, difference)
    return total


def _smallest(distances: Tensor, count: int) -> Tensor:
    """Return the columns of the smallest entries of each row, in order; ties go to the first."""
    found = [distances.argmin(dim=1, keepdim=True)]
    for _ in range(1, min(count, distances.shape[1])):
        distances.scatter_(1, found[-1], torch.inf)
        found.append(distances.argmin(dim=1, keepdim=True))
    return torch.cat(found, dim=1)
