"""How a new point meets the first layer: by its scores t = H_1ᵀk_1(X, x), and by the samples nearest to it.

Codes of a point depend on the point through its scores alone; the samples are where the search for codes begins.
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

#: distances between scores that are held at once
NEAREST_ENTRIES = {"cpu": 1 << 24, "cuda": 1 << 28}
#: samples of other processes that a process keeps the scores and codes of
SHARED_STARTS = 1 << 17


class FirstLayer(ABC):
    """What the codes of a new point need to know of it."""

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
        """Return H_1 and what centring takes off."""
        return self.H1, torch.zeros_like(self.H1[0]) if self.row_means is None else self.row_means @ self.H1

    def nearest(self, rows: Tensor, count: int) -> Tensor:
        """Return the samples nearest in feature space."""
        # Where all samples have one length the kernel values themselves tell more: 1 - 2k is 1 for every small k.
        apart = -rows if self.one_length else torch.sub(self.diagonal, rows, alpha=2)
        return _smallest(apart, count)


class FeatureRows(FirstLayer):
    """New points given by their explicit features, m×D; the sum over samples is done once.

    Codes depend on a point through its scores alone, so that samples with similar scores are near: s_1 numbers per
    sample to compare instead of D.
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
        """Return ΦᵀH_1 and what centring takes off."""
        return self.sums, self.shift

    def nearest(self, rows: Tensor, count: int) -> Tensor:
        """Return the samples nearest in their scores."""
        n = len(self.training_scores)
        height = max(1, NEAREST_ENTRIES["cuda" if rows.is_cuda else "cpu"] // n)
        found = []
        for part in self.scores(rows).split(height):
            found.append(_smallest(_distances(part, self.training_scores), count))
        return torch.cat(found)


def starting_points(rows: Tensor) -> Tensor:
    """Return a row for each sample that codes of new points may begin from: all of them, if one process has them all.

    Where samples are shared out, each process keeps some of all, so that it can encode without the others.
    """
    return rows if collectives.current() is None else collectives.spread_rows(rows, SHARED_STARTS)


def first_layer(fitted: FittedModel, gram: FirstGram) -> FirstLayer:
    """Return how new points are seen by the first layer: by their features where these are explicit."""
    return FeatureRows(fitted, gram) if fitted.kernels[0].is_explicit else KernelRows(fitted)


def first_diagonal(fitted: FittedModel) -> Tensor:
    """Return k_1(x_i, x_i) of every sample, without K_1; samples in a file are read in tiles."""
    kernel, X = fitted.kernels[0], fitted.X
    if isinstance(X, Rows):
        return torch.cat([kernel.diagonal(X[rows]) for rows in X.tiles()])
    return kernel.diagonal(X)


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Return the distances of all rows, squared on a GPU, by differences: with products no sample finds itself."""
    if not x.is_cuda:
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    # There cdist gives a block of threads to each pair, and takes 25 times as long as this for ten columns.
    total = x.new_zeros(len(x), len(y))
    difference = torch.empty_like(total)
    for a, b in zip(x.T, y.T.contiguous(), strict=True):
        torch.sub(a[:, None], b, out=difference)
        total.addcmul_(difference, difference)
    return total


def _smallest(distances: Tensor, count: int) -> Tensor:
    """Return the columns of the smallest entries of each row, in order, the first of those that are equal first."""
    found = [distances.argmin(dim=1, keepdim=True)]
    for _ in range(1, min(count, distances.shape[1])):
        distances.scatter_(1, found[-1], torch.inf)
        found.append(distances.argmin(dim=1, keepdim=True))
    return torch.cat(found, dim=1)
