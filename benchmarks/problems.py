"""The structured set, and the common problem of all solvers."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drkm.gram import Dense
from drkm.kernels import RBF
from drkm.problem.energy import Energy
from drkm.training import starts

SIZES = (10, 5)
#: number of samples and bandwidths of the two layers
Cell = tuple[int, tuple[float, float]]


def structured(n: int) -> Tensor:
    """64 smooth functions of three uniform factors, with a little noise."""
    rng = np.random.RandomState(0)
    z, F, b = rng.rand(n, 3), 2 * rng.randn(3, 40), 6.28 * rng.rand(40)
    A, E = rng.randn(40, 64), rng.randn(n, 64)
    return torch.from_numpy(np.cos(z @ F + b) @ A / np.sqrt(40) + 0.05 * E)


def bandwidths(n: int) -> list[tuple[float, float]]:
    return [(50.0, 50.0), (50.0, 2 * SIZES[0] / n), (5.0, 2 * SIZES[0] / n)]


def cells_of(word: str) -> list[Cell]:
    """Read "n" or "n:row" as cells of the tables."""
    size, _, row = word.partition(":")
    pairs = bandwidths(int(size))
    return [(int(size), pair) for pair in (pairs if row == "" else [pairs[int(row)]])]


@dataclass
class Problem:
    """One cell of the table: samples, energy, the common start and the time to compute them."""

    X: Tensor
    sigma2: tuple[float, float]
    energy: Energy
    H: Tensor
    start_seconds: float

    @classmethod
    def make(cls, n: int, sigma2: tuple[float, float]) -> Problem:
        X = structured(n)
        clock = time.perf_counter()
        energy = Energy(X, [RBF(sigma2[0]), RBF(sigma2[1])], SIZES, (1.0, 1.0), Dense())
        H = starts.kernel_pca(energy)
        return cls(X, sigma2, energy, H, time.perf_counter() - clock)

    def cost(self, H: Tensor, K1: Tensor | None = None) -> Tensor:
        """J as a differentiable function; K_1 is recomputed unless given."""
        U, A = H[:, : SIZES[0]], H[:, SIZES[0] :]
        K1 = plain_rbf(self.X, self.sigma2[0]) if K1 is None else K1
        return -0.5 * ((U * (K1 @ U)).sum() + (A * (plain_rbf(U, self.sigma2[1]) @ A)).sum())


def plain_rbf(x: Tensor, sigma2: float) -> Tensor:
    square = (x * x).sum(dim=1)
    return torch.exp((x @ x.T - 0.5 * square[:, None] - 0.5 * square) / sigma2)
