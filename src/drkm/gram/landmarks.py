"""The choice of the landmarks of a Nyström approximation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.files.rows import Rows
from drkm.kernels import Pairwise
from drkm.machine.layout import copied

NAMES = ("uniform", "kmeans", "rpcholesky")
#: k-means and pivoted Cholesky use this many samples per landmark, drawn uniformly if there are more
CANDIDATES = 10
#: kernel values are accurate to this many rounding errors
ROUNDING = 100
#: pivots proposed at once
BLOCK = 100


def choose_landmarks(name: str, kernel: Pairwise, X: Tensor | Rows, m: int, random_state: int) -> Tensor:
    """Return m landmarks (all samples if there are at most m)."""
    n = collectives.samples(len(X))
    if m >= n:
        return collectives.gather(X[:]).clone()
    rng = np.random.default_rng(random_state)
    if name == "uniform":
        return _drawn(X, m, rng)
    candidates = _drawn(X, min(n, CANDIDATES * m), rng)
    if name == "kmeans":
        return collectives.of_first(_centres(candidates, m, int(rng.integers(2**31))))
    return candidates[pivots(kernel, candidates, m, rng)]


def _drawn(X: Tensor | Rows, count: int, rng: np.random.Generator) -> Tensor:
    """Return rows drawn without replacement, in their original order."""
    index = np.sort(rng.choice(collectives.samples(len(X)), count, replace=False))
    return collectives.rows_at(X, torch.from_numpy(index).to(X.device))


def _centres(X: Tensor, m: int, seed: int) -> Tensor:
    from sklearn.cluster import MiniBatchKMeans

    means = MiniBatchKMeans(m, batch_size=max(1024, 2 * m), n_init=1, max_iter=20, random_state=seed)
    return copied(means.fit(X.cpu().numpy()).cluster_centers_).to(X)


def pivots(kernel: Pairwise, X: Tensor, m: int, rng: np.random.Generator) -> Tensor:
    """Return the indices of at most m pivots of a randomly pivoted partial Cholesky factorisation of K(X).

    A pivot is drawn with a probability proportional to the residual of its diagonal entry (Chen, Epperly, Tropp and
    Webber). Proposals are drawn in blocks and thinned by rejection, which gives the same distribution as drawing them
    one by one. Fewer than m are returned if nothing is left to approximate.
    """
    left = kernel.diagonal(X).double()
    rounding = ROUNDING * torch.finfo(X.dtype).eps
    negligible, jitter = rounding * float(left.sum()), rounding * float(left.max())
    factor = torch.zeros(len(X), m, dtype=torch.float64, device=X.device)
    chosen: list[int] = []
    while len(chosen) < m and float(left.sum()) > negligible:
        weights = left.cpu().numpy()
        proposed = rng.choice(len(X), min(BLOCK, m - len(chosen)), p=weights / weights.sum())
        done = factor[:, : len(chosen)]
        index = torch.from_numpy(proposed).to(X.device)
        block = kernel(X[index], X[index]).double() - done[index] @ done[index].T
        new = index[_accepted(block.cpu().numpy(), rng)]
        columns = kernel(X, X[new]).double() - done @ done[new].T
        corner = 0.5 * (columns[new] + columns[new].T)
        corner.diagonal().add_(jitter)
        fresh = torch.linalg.solve_triangular(torch.linalg.cholesky(corner), columns.T, upper=False).T
        factor[:, len(chosen) : len(chosen) + len(new)] = fresh
        left = (left - fresh.square().sum(dim=1)).clamp_(min=0)
        left[new] = 0
        chosen += new.tolist()
    return torch.tensor(chosen, dtype=torch.long, device=X.device)


def _accepted(block: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Return the accepted proposals; each is kept with the share of its diagonal that earlier ones leave."""
    first, kept = block.diagonal().copy(), []
    block = block.copy()
    for i in range(len(block)):
        if first[i] > 0 and rng.random() * first[i] < block[i, i]:
            kept.append(i)
            block -= np.outer(block[:, i], block[i]) / block[i, i]
    return kept
